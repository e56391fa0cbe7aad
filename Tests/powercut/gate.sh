#!/usr/bin/env bash
# The power cuts for every build: cuts of the service, of the client and of a PostgreSQL on ext4, of the
# service and the client on xfs and btrfs, and all mutants. What the system does not permit is skipped,
# which is a failure unless it was asked for by name; see Tests/support/skip.sh.
#
#   gate.sh PATH_TO_KEDGE           takes two or three minutes
#   gate.sh PATH_TO_KEDGE SECONDS   goes on with new seeds for so long, in all
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../support/skip.sh"

binary=${1:?usage: gate.sh PATH_TO_KEDGE [SECONDS]}
seconds=${2:-0}
seed=1 missed=0
if ((seconds)); then seed=$((EPOCHSECONDS % 100000)); fi

# cuts NAME SHORT LONG SHARE OPTION…: so many cuts of each recording, and for that percentage of the
# time. When it cannot run here it is skipped under that name, and the others go on.
cuts() {
    local name=$1 images=$2 status=0
    if ((seconds)); then images=$3; fi
    local options=(--images "$images" --seed "$seed" --seconds $((seconds * $4 / 100)))
    shift 4
    python3 "$here/power_cut.py" --binary "$binary" "${options[@]}" "$@" || status=$?
    if ((status == SKIPPED_STATUS)); then
        status=0
        (skip "$name" "see above") || status=$?
    fi
    if ((missed == 0)); then missed=$status; fi
}

part=service
if ((seconds)); then part=both; fi

cuts power-cuts 15 60 60
# The other parts need what that one needs.
if ((missed != SKIPPED_STATUS)); then
    cuts power-cuts-xfs 4 40 10 --file-system xfs --part "$part"
    cuts power-cuts-btrfs 4 40 10 --file-system btrfs --part "$part"
    cuts power-cuts 5 40 20 --part postgres
    status=0
    "$here/mutants_are_caught.sh" "$binary" || status=$?
    if ((status == SKIPPED_STATUS)); then
        status=0
        (skip power-cuts "see above") || status=$?
    fi
    if ((missed == 0)); then missed=$status; fi
fi
exit "$missed"
