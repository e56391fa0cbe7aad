#!/usr/bin/env bash
# Runs `swift test` with the given arguments. When it fails, the lines that say what failed are
# printed once more at the end, where a reader of a long log looks first. A test that cannot run
# here names itself in its reason, as in "mounts: not permitted", and fails the run as in skip.sh.
#
#   swift_test.sh ARGUMENT...
set -euo pipefail
source "$(dirname "$0")/skip.sh"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
swift test "$@" 2>&1 | tee "$log" || status=$?
if ((status != 0)); then
    echo "==> what failed:"
    grep -E -A 4 '✘|WARNING: ThreadSanitizer|Fatal error|recorded an issue' "$log" |
        grep -vE '^(◇|✔)' | tail -n 120 || true
fi

# skipped_reasons FILE: `NAME: REASON` of each kind of test that did not run, once. A reason without
# a name gets `unnamed`, which no ALLOW_SKIP permits by accident.
skipped_reasons() {
    sed -nE 's/^[^[:alnum:]]*(Test|Suite) .* skipped(: "(.*)")?\.?$/\3/p' "$1" |
        sed -E 's/^$/no reason is given/; /^[a-z0-9-]+: /!s/^/unnamed: /' | sort -u
}

while IFS= read -r line; do
    skipped=0
    (skip "${line%%: *}" "${line#*: }") || skipped=$?
    if ((status == 0)); then status=$skipped; fi
done < <(skipped_reasons "$log")
exit "$status"
