#!/usr/bin/env bash
# Runs `swift test` with the given arguments. When it fails, the lines that say what failed are
# printed once more at the end, where a reader of a long log looks first.
#
#   swift_test.sh ARGUMENT...
set -euo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
swift test "$@" 2>&1 | tee "$log" || status=$?
if ((status != 0)); then
    echo "==> what failed:"
    grep -E -A 4 '✘|WARNING: ThreadSanitizer|Fatal error|recorded an issue' "$log" |
        grep -vE '^(◇|✔)' | tail -n 120 || true
fi
exit "$status"
