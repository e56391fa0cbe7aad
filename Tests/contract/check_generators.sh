#!/usr/bin/env bash
# Proves that two code generators make a usable client of the whole contract: a method for each operation,
# with each parameter and the body, whose calls upload and download files by each protocol. Warnings are
# exactly those in generators/*.warnings, which have the reasons.
#
#   check_generators.sh PATH_TO_KEDGE
#
# The programs of generators/requirements.txt must come first on PATH. OpenAPI Generator needs Java.
set -euo pipefail

binary=$(realpath "${1:?usage: check_generators.sh PATH_TO_KEDGE}")
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
contract=$root/openapi/kedge.yaml
source "$root/Tests/support/server.sh"
export PYTHONDONTWRITEBYTECODE=1

scratch=$(mktemp -d)
trap 'stop_server || true; rm -rf "$scratch"' EXIT

# generate NAME COMMAND…: runs a generator; its output goes to NAME.log.
generate() {
    local log=$scratch/$1.log status=0
    shift
    timeout 60s "$@" >"$log" 2>&1 || status=$?
    if ((status != 0)); then
        echo "$1 ended with status $status:" >&2
        cat "$log" >&2
        exit 1
    fi
}

# expect_warnings NAME: the warnings on standard input are the listed ones, in this order. Repetitions do
# not count: OpenAPI Generator prints some warnings once or twice, differently in each run.
expect_warnings() {
    local listed=$here/generators/$1.warnings
    if ! diff --unified <(grep -v '^#' "$listed") <(awk '!seen[$0]++') >&2; then
        echo "$1: the warnings are not those in $listed" >&2
        exit 1
    fi
}

generate openapi-python-client openapi-python-client generate --path "$contract" \
    --config "$root/openapi/openapi-python-client.yaml" --meta none --output-path "$scratch/kedge_attrs"
# A warning is a title, an empty line, its reason, and the part of the contract.
awk '/^(WARNING|ERROR)/ { title = $0; next } title && NF { print title, $0; title = "" }' \
    "$scratch/openapi-python-client.log" | expect_warnings openapi-python-client

generate openapi-generator openapi-generator-cli generate --input-spec "$contract" \
    --generator-name python --package-name kedge_pydantic --output "$scratch/openapi-generator" \
    --global-property models,apis,supportingFiles,apiTests=false,modelTests=false
sed -nE '/^\[[^]]*\] (WARN|ERROR) /p' "$scratch/openapi-generator.log" | expect_warnings openapi-generator

start_server "$binary" "$scratch" --limits-min-chunk-size 1024
for client in openapi_python_client openapi_generator; do
    PYTHONPATH=$scratch:$scratch/openapi-generator \
        timeout 60s python3 "$here/generators/use_$client.py" "$contract" "$server_url"
done
stop_server
