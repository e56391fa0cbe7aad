#!/usr/bin/env bash
# Proves that the tour in docs/ works as printed, and that what the service keeps afterwards is the file.
#
#   check_tour.sh PATH_TO_KEDGE
set -euo pipefail

binary=$(realpath "${1:?usage: check_tour.sh PATH_TO_KEDGE}")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/Tests/support/server.sh"

scratch=$(mktemp -d)
trap 'stop_server || true; rm -rf "$scratch"' EXIT
start_server "$binary" "$scratch" --log-format json

# Not a whole number of chunks, and a name that JSON must escape.
file="$scratch/a \"tour\".bin"
head --bytes=1000001 /dev/urandom >"$file"
digest=$(sha256sum <"$file" | cut -d ' ' -f 1)

KEDGE_SERVER=$server_url timeout 60s sh "$root/docs/tour.sh" "$file" >"$scratch/tour.out"
if ! grep --quiet "The download is the upload: sha256 $digest" "$scratch/tour.out"; then
    echo "the tour did not end with the file's digest; it printed:" >&2
    cat "$scratch/tour.out" >&2
    exit 1
fi

# The service's own answer, beside what the tour says of itself.
file_id=$(sed -n 's/.*"remoteFileId":"\([0-9a-f]*\)".*/\1/p' "$scratch/tour.out" | head -n 1)
kept=$(curl --silent --show-error --fail "$server_url/files/$file_id" | sha256sum | cut -d ' ' -f 1)
if [[ $kept != "$digest" ]]; then
    echo "the service keeps $kept instead of $digest" >&2
    exit 1
fi
stop_server
echo "the tour works"
