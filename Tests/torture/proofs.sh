#!/usr/bin/env bash
# Runs the proofs of this folder, each to its end, and fails when one of them missed its bar.
#
#   proofs.sh PATH_TO_KEDGE [--long] [NAME…]
#
# The short form takes half a minute a proof at most; --long takes minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../support/skip.sh"
export PYTHONDONTWRITEBYTECODE=1

binary=$(realpath "${1:?usage: proofs.sh PATH_TO_KEDGE [--long] [NAME…]}")
shift
length=() limit=120s
if [[ ${1:-} == --long ]]; then
    length=(--long) limit=1800s
    shift
fi
proofs=("$@")
if ((${#proofs[@]} == 0)); then
    proofs=(rot failover wiped_leases start_up cut_bodies migrations secret_search overload
        slow_disk limits)
fi

failed=() count=0
for proof in "${proofs[@]}"; do
    echo "==> $proof"
    count=$((count + 1))
    # A proof that gets SIGTERM ends the processes that it started.
    timeout --kill-after=20s "$limit" \
        python3 "$here/$proof.py" --binary "$binary" "${length[@]}" || failed+=("$proof")
done
if ((${#failed[@]})); then
    echo "proofs: not proven: ${failed[*]}" >&2
    exit 1
fi
echo "proofs: $count of $count bars met in $SECONDS s"
