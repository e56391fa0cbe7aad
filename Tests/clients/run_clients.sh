#!/usr/bin/env bash
# Proves that clients which others wrote upload to Kedge unchanged, over a link that fails, and that on every
# mix of stores the service keeps tus and IETF resumable uploads as their specifications say, kills included. That
# clients which know nothing of links use them in place of an address. And that our own client gets through proxies,
# and whole files from servers, that others wrote.
#
#   run_clients.sh PATH_TO_KEDGE [MIB] [SEED]
#
# `python3` on PATH must be the one that Tests/clients/requirements.txt is installed for.
set -euo pipefail

binary=$(realpath "${1:?usage: run_clients.sh PATH_TO_KEDGE [MIB] [SEED]}")
mebibytes=${2:-200}
seed=${3:-$((RANDOM * 32768 + RANDOM))}
here=$(cd "$(dirname "$0")" && pwd)
tests=$(cd "$here/.." && pwd)
export PYTHONDONTWRITEBYTECODE=1

# The suite must find faults before it may praise.
timeout 300s python3 "$tests/conformance/check_suite.py"

timeout 300s python3 "$here/zsync.py" --binary "$binary" --seed "$seed"
timeout 900s python3 "$here/origins.py" --binary "$binary" --seed "$seed"
timeout 1200s python3 "$here/proxies.py" --binary "$binary" --seed "$seed"
timeout 900s python3 "$here/every_mix.py" --binary "$binary" --seed "$seed"
timeout 900s python3 "$here/link_clients.py" --binary "$binary" --seed "$seed"
timeout 1800s python3 "$here/run_clients.py" --binary "$binary" --mib "$mebibytes" --seed "$seed"
