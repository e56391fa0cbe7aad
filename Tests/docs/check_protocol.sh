#!/usr/bin/env bash
# Proves that the examples in docs/PROTOCOL.md are what the service answers.
#
#   check_protocol.sh PATH_TO_KEDGE
#
# `python3` on PATH must be one with PyYAML.
set -euo pipefail

binary=$(realpath "${1:?usage: check_protocol.sh PATH_TO_KEDGE}")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/Tests/support/server.sh"

scratch=$(mktemp -d)
trap 'stop_server || true; rm -rf "$scratch"' EXIT
# With nothing in it yet: one example lists all files.
start_server "$binary" "$scratch" --log-format json

timeout 60s python3 "$root/Tests/docs/check_protocol.py" "$server_url"
stop_server
