#!/usr/bin/env bash
# Proves the backup of docs/OPERATIONS.md for SQLite and a disk: copies taken from a running service, in the
# middle of an upload, make a service that is whole.
#
#   check_backup.sh PATH_TO_KEDGE
set -euo pipefail

binary=$(realpath "${1:?usage: check_backup.sh PATH_TO_KEDGE}")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/Tests/support/server.sh"
scratch=$(mktemp -d)
upload=""
clean_up() {
    [[ -z $upload ]] || kill -KILL "$upload" 2>/dev/null || true
    stop_server || true
    rm -rf "$scratch"
}
trap clean_up EXIT

client() {
    env --ignore-environment PATH="$PATH" HOME="$scratch" XDG_STATE_HOME="$scratch/state" \
        KEDGE_SERVER="$server_url" "$binary" "$@" 2>>"$scratch/talk"
}
# recorded DATABASE: how many chunks of unfinished uploads it knows.
recorded() {
    sqlite3 "$1" "SELECT count(*) FROM chunk JOIN session ON session.number = chunk.session
        WHERE state = 'open'"
}
fail() {
    echo "check_backup: $1" >&2
    exit 1
}

start_server "$binary" "$scratch"
head -c 5000000 /dev/urandom >"$scratch/kept"
head -c 200000000 /dev/urandom >"$scratch/coming"
kept=$(client upload "$scratch/kept")

# Not through client(): the signals below are for the command itself.
env --ignore-environment PATH="$PATH" HOME="$scratch" XDG_STATE_HOME="$scratch/state" \
    "$binary" upload "$scratch/coming" --server "$server_url" >"$scratch/coming.id" 2>>"$scratch/talk" &
upload=$!
# The copy is of interest once some chunks are recorded and others are not.
for _ in $(seq 1 200); do
    if (($(recorded "$scratch/data/kedge.sqlite") > 6)); then break; fi
    sleep 0.02
done

mkdir -m 0700 "$scratch/backup"
sqlite3 "file:$scratch/data/kedge.sqlite?mode=ro" ".backup $scratch/backup/kedge.sqlite"
# Between the two copies more arrives, but not so much that the upload is over.
kill -STOP "$upload"
cp --archive "$scratch/data/blobs" "$scratch/data/staging" "$scratch/backup/" 2>>"$scratch/talk" ||
    fail "the copy failed"
kill -CONT "$upload"
wait "$upload" || fail "the upload failed"
upload=""
stop_server

chunks=$(recorded "$scratch/backup/kedge.sqlite")
((chunks > 6)) || fail "the upload was over before its copy was taken"

mv "$scratch/data" "$scratch/original"
mv "$scratch/backup" "$scratch/data"
env --ignore-environment "$binary" scrub --data "$scratch/data" >"$scratch/findings" || {
    cat "$scratch/findings" >&2
    fail "the copy is not whole"
}
start_server "$binary" "$scratch"
client download "$kept" --output "$scratch/again" >/dev/null || fail "a file cannot be downloaded"
cmp "$scratch/kept" "$scratch/again"
stop_server
echo "backup of a running service: whole, with $chunks chunks of an upload under way"
