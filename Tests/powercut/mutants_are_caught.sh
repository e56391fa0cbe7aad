#!/usr/bin/env bash
# Shows that the test of power cuts can fail: takes away one duty of durability after the other, and
# fails when the test does not notice.
#
#   mutants_are_caught.sh BINARY [IMAGES]
#
# IMAGES is how many cuts each mutant may survive (80); most fall at the first. Ends with 77 when power
# cuts cannot be tested here.
set -euo pipefail

binary=${1:?usage: mutants_are_caught.sh BINARY [IMAGES]}
images=${2:-80}
program=$(dirname "$0")/power_cut.py
output=$(mktemp)
running=""
# The program releases its mounts only when it gets SIGTERM and the time for it.
clean_up() {
    if [[ -n $running ]]; then
        kill -TERM "$running" 2>/dev/null || true
        wait "$running" || true
    fi
    rm -f "$output"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

# The client's directory syncs alone can go unnoticed on ext4: the completed row makes its journal
# longer, and syncing that commits the name as well. So there both are left out together.
mutants=(
    service:no-fdatasync service:no-directory-sync service:no-database-sync service:late
    client:no-fdatasync client:no-promotion-sync client:no-database-sync client:late
    postgres:no-database-sync
)
survivors=()
for mutant in "${mutants[@]}"; do
    part=${mutant%%:*} name=${mutant#*:} status=0
    python3 "$program" --binary "$binary" --part "$part" --mutant "$name" --images "$images" \
        >"$output" 2>&1 &
    running=$!
    wait "$running" || status=$?
    running=""
    case $status in
        3) echo "$part, $name: caught; $(head -n 1 "$output" | cut -c 1-160)" ;;
        0)
            echo "$part, $name: SURVIVED; $(tail -n 1 "$output")" >&2
            survivors+=("$mutant")
            ;;
        *)
            cat "$output" >&2
            exit "$status"
            ;;
    esac
done
if ((${#survivors[@]})); then
    echo "the test of power cuts does not notice: ${survivors[*]}" >&2
    exit 1
fi
echo "mutants: all ${#mutants[@]} caught"
