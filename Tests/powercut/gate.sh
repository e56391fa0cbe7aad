#!/usr/bin/env bash
# The power cuts for every build: some cuts of service and client, and all mutants. Where the system does
# not permit them they are skipped, which is a failure unless it was asked for; see Tests/support/skip.sh.
#
#   gate.sh PATH_TO_KEDGE [OPTIONS OF power_cut.py]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../support/skip.sh"

binary=${1:?usage: gate.sh PATH_TO_KEDGE [OPTIONS OF power_cut.py]}
shift
options=("$@")
if ((${#options[@]} == 0)); then options=(--images 15 --seed 1); fi

# run COMMAND...: a part; ends the script when it cannot run here.
run() {
    local status=0
    "$@" || status=$?
    if ((status == SKIPPED_STATUS)); then
        skip power-cuts "the power cut tests cannot run on this system; see above"
    fi
    return "$status"
}

run python3 "$here/power_cut.py" --binary "$binary" "${options[@]}"
run "$here/mutants_are_caught.sh" "$binary"
