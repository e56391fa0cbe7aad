# Skips a check that cannot run here. Sourced, not run; skipping.py does it for Python.
#
#   skip NAME REASON…   prints `SKIPPED NAME: REASON` and ends the script: with status 77, which is a
#                       failure, unless NAME is one of the words of ALLOW_SKIP; then with 0
#   is_skip_allowed NAME
# shellcheck shell=bash

SKIPPED_STATUS=77

is_skip_allowed() {
    [[ " ${ALLOW_SKIP:-} " == *" $1 "* ]]
}

skip() {
    local name=$1
    shift
    echo "SKIPPED $name: $*" >&2
    if is_skip_allowed "$name"; then exit 0; fi
    echo "ALLOW_SKIP=\"$name\" allows this to be skipped" >&2
    exit "$SKIPPED_STATUS"
}
