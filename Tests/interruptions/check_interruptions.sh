#!/usr/bin/env bash
# Proves that calls which are interrupted or come up short cost nothing: service and client move a file
# while every third read and write is interrupted and every third does half.
#
#   check_interruptions.sh PATH_TO_KEDGE
set -euo pipefail

binary=$(realpath "${1:?usage: check_interruptions.sh PATH_TO_KEDGE}")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/Tests/support/server.sh"

scratch=$(mktemp -d)
trap 'stop_server || true; rm -rf "$scratch"' EXIT
compiler=$(command -v clang || command -v cc)
"$compiler" -Wall -Werror -O1 -shared -fPIC -o "$scratch/interruptions.so" \
    "$root/Tests/interruptions/interruptions.c" -ldl

# interrupted NAME: makes a command that runs kedge so, and counts into a file of that name.
interrupted() {
    cat >"$scratch/$1" <<EOF
#!/bin/sh
LD_PRELOAD='$scratch/interruptions.so' INTERRUPTIONS_COUNT='$scratch/$1.count' exec '$binary' "\$@"
EOF
    chmod +x "$scratch/$1"
}
interrupted service
interrupted client

# expect_interrupted NAME: fails when nothing was interrupted, for then nothing was proven.
expect_interrupted() {
    local count
    count=$(awk '{ sum += $1 } END { print sum + 0 }' "$scratch/$1.count")
    if ((count < 20)); then
        echo "only $count calls of the $1 were interrupted or short" >&2
        exit 1
    fi
    echo "$1: $count calls were interrupted or short"
}

start_server "$scratch/service" "$scratch"
head --bytes=60000001 /dev/urandom >"$scratch/source.bin"
export XDG_STATE_HOME="$scratch/state"
id=$("$scratch/client" upload "$scratch/source.bin" --server "$server_url" --json |
    sed -n 's/.*"remoteFileId":"\([0-9a-f]*\)".*/\1/p' | head -n 1)
"$scratch/client" download "$id" -o "$scratch/copy.bin" --server "$server_url" --quiet
cmp "$scratch/source.bin" "$scratch/copy.bin"
stop_server
expect_interrupted service
expect_interrupted client
