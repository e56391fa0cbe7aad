#!/usr/bin/env bash
# Proves that what docs/DURABILITY.md calls a proof is there: each test and path that it names.
#
#   check_proof.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

failed=0
proof=$(sed -n '/^## The proof/,/^## What is not promised/p' docs/DURABILITY.md)
if [[ -z $proof ]]; then
    echo "docs/DURABILITY.md has no proof" >&2
    exit 1
fi
# Names of suites and files of Swift tests.
for name in $(grep -oE '`[A-Z][A-Za-z]+Tests`' <<<"$proof" | tr -d '`' | sort -u); do
    if ! grep -rqE "(struct|enum) $name\b" Tests --include='*.swift' &&
        [[ -z $(find Tests -name "$name.swift") ]]; then
        echo "docs/DURABILITY.md names $name, which is no test" >&2
        failed=1
    fi
done
# Paths of the repository, and programs by their script.
for path in $(grep -oE 'Tests/[A-Za-z_./]+' <<<"$proof" | sed 's/[.]$//' | sort -u); do
    if [[ ! -e $path ]]; then
        echo "docs/DURABILITY.md names $path, which is not there" >&2
        failed=1
    fi
done
# Suites that the page must name, by their targets: two of them exist for the server and the client.
for suite in KedgeEngineTests/{PowerCutTests,NthFailureTests} \
    KedgeClientTests/{PowerCutTests,NthFailureTests} KedgeDiskTests/{DiskFaultTests,RestartTests}; do
    target=${suite%/*} name=${suite#*/}
    if ! grep -rqE "struct $name\b" "Tests/$target"; then
        echo "there is no suite $name in Tests/$target" >&2
        failed=1
    fi
    if ! grep -qF "\`$name\`" <<<"$proof"; then
        echo "docs/DURABILITY.md does not name the suite $name" >&2
        failed=1
    fi
done
if ((failed)); then exit 1; fi
echo "the proofs in docs/DURABILITY.md are there"
