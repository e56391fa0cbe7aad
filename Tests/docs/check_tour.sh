#!/usr/bin/env bash
# Proves that the lines in docs/TOUR.md work when they are pasted into a shell, one after the other, and that the
# service then keeps the file.
#
#   check_tour.sh PATH_TO_KEDGE
set -euo pipefail

binary=$(realpath "${1:?usage: check_tour.sh PATH_TO_KEDGE}")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/Tests/support/server.sh"

scratch=$(mktemp -d)
trap 'stop_server || true; rm -rf "$scratch"' EXIT
start_server "$binary" "$scratch" --log-format json

# The indented lines, as they are.
sed -n 's/^    //p' "$root/docs/TOUR.md" >"$scratch/lines"
if (($(wc -l <"$scratch/lines") < 40)); then
    echo "docs/TOUR.md has few lines to paste" >&2
    exit 1
fi

# paste NAME SHELL…: types all lines into one session, which ends at the first command that fails, as -e says.
# Only a session that reads all of its input gets to the last line.
paste() {
    local name=$1
    shift
    mkdir "$scratch/$name"
    {
        cat "$scratch/lines"
        echo 'set +e; echo "$url" >url; exit 0'
    } >"$scratch/$name.lines"
    if ! (cd "$scratch/$name" && KEDGE_SERVER=$server_url timeout 60s "$@" -e <"$scratch/$name.lines") \
        >"$scratch/$name.out" 2>&1 || [[ ! -s $scratch/$name/url ]] ||
        grep --quiet "event not found" "$scratch/$name.out"; then
        echo "the tour fails in $*; it printed:" >&2
        cat "$scratch/$name.out" >&2
        exit 1
    fi
    # The tour must have broken off the chunk, and gone on inside it.
    local received
    received=$(sed -n 's/^.*chunk 0 has \([0-9]*\) bytes$/\1/p' "$scratch/$name.out")
    if ((received < 1 || received >= 524288)); then
        echo "the tour in $* resumed after ${received:-no} bytes of a chunk of 524288" >&2
        exit 1
    fi
    # The service's own answer, beside what the tour says of itself.
    if ! curl --silent --show-error --fail "$(<"$scratch/$name/url")" | cmp - "$scratch/$name/video.bin"; then
        echo "the service keeps another file than the tour in $* sent" >&2
        exit 1
    fi
    echo "the tour works in $*, resumed after $received bytes of a chunk"
}

paste sh sh
paste bash bash --norc --noprofile -o pipefail
# As in a terminal, where an exclamation mark can stand for an earlier command.
paste interactive bash --norc --noprofile -o pipefail -i
stop_server
