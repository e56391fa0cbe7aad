#!/usr/bin/env bash
# Looks for a broken promise for a given time, and says what it tried.
#
#   torture.sh SECONDS BINARIES
#
# BINARIES is the directory with kedge and kedge-simulator. Of the time, the simulator and the power cuts
# of a real file system get half each; the proofs and attacks of this folder and the kills of real processes
# over bad links come on top and take about an hour, however long the rest is.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:?how many seconds?}
binaries=${2:?where are kedge and kedge-simulator?}
summary=$(mktemp)
log=$(mktemp)
kill_log=$(mktemp)
trap 'rm -f "$summary" "$log" "$kill_log"' EXIT

# part NAME COMMAND...: runs a part and keeps its last line for the end.
part() {
    local name=$1
    shift
    printf '==> %s\n' "$name"
    if ! "$@" 2>&1 | tee "$log"; then
        printf '==> %s failed\n' "$name" >&2
        exit 1
    fi
    printf '%-18s %s\n' "$name:" "$(tail -n 1 "$log")" >>"$summary"
}

# Another stretch of seeds each time; the simulator names the one that shows something.
first_seed=$((1000 * (EPOCHSECONDS % 1000000000)))

kills() {
    KEDGE_TORTURE=1 Tests/support/swift_test.sh --skip-build --no-parallel \
        --filter "KedgeCommandTests\.(FailingDisk|KillStorm|Loss|Outage|Rewriting|RoughLink|Takeover)Tests" \
        --filter "KedgeClientTests\.ReturnTests" --filter "KedgePostgresTests\.LostLeaseTests" |
        tee "$kill_log" || return 1
    awk '/^torture: / { count += $2 } END { printf "%d kills survived, violations 0\n", count }' \
        "$kill_log"
}

echo "first seed: $first_seed"
part "simulator" "$binaries/kedge-simulator" \
    --first "$first_seed" --seeds 100000000 --seconds $((seconds / 2))
part "its mutants" "$binaries/kedge-simulator" --mutants
part "power cuts" Tests/powercut/gate.sh "$binaries/kedge" $((seconds / 2))
part "proofs" Tests/torture/proofs.sh "$binaries/kedge" --long
part "attacks" Tests/torture/attacks.sh "$binaries/kedge" long
part "origins" python3 Tests/clients/origins.py --binary "$binaries/kedge" --whole
part "proxies" python3 Tests/clients/proxies.py --binary "$binaries/kedge" --long
part "kills" kills

echo "==> tortured for $SECONDS s"
cat "$summary"
