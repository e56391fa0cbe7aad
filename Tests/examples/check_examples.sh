#!/usr/bin/env bash
# Proves that every program in examples/ does what its page says.
#
#   check_examples.sh PATH_TO_KEDGE [PATH_TO_SWIFT_EXAMPLE]
#
# `python3` on PATH must be the one that Tests/clients/requirements.txt is installed for. The Swift example is a package
# of its own, which `swift build --package-path examples/swift` builds; without its path it does not run.
set -euo pipefail

binary=$(realpath "${1:?usage: check_examples.sh PATH_TO_KEDGE [PATH_TO_SWIFT_EXAMPLE]}")
here=$(cd "$(dirname "$0")" && pwd)
options=()
if [[ -n ${2:-} ]]; then options=(--swift "$(realpath "$2")"); fi
PYTHONDONTWRITEBYTECODE=1 timeout 300s python3 "$here/check_examples.py" --binary "$binary" "${options[@]}"
