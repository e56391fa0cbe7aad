#!/usr/bin/env bash
# Fails when a target imports what it must not know, or when a promise to the compiler that it cannot
# check (@unchecked Sendable and its like) is not on the list with its reason.
#
#   check_imports.sh            checks this repository, after checking itself on planted violations
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
allowlist_path=Tests/lint/unsafe-allowlist.txt

# imports TREE: every import below TREE/Sources as "file module", whatever stands around the keyword.
imports() {
    local attribute='(@[A-Za-z_]+(\([^)]*\))?[[:space:]]+)'
    local access='((public|package|internal|fileprivate|private)[[:space:]]+)'
    local kind='((struct|class|enum|protocol|func|var|let|typealias)[[:space:]]+)'
    (
        cd "$1"
        grep -rEH --include='*.swift' "^[[:space:]]*$attribute*$access?import[[:space:]]" Sources ||
            true
    ) | sed -E "s/^([^:]+):[[:space:]]*$attribute*$access?import[[:space:]]+$kind?([A-Za-z_0-9]+).*/\1 \8/"
}

# only_in MODULE_PATTERN PLACE_PATTERN SENTENCE: reads imports, prints those of the modules elsewhere.
only_in() {
    local file module
    while read -r file module; do
        [[ $module =~ ^($1)$ && ! $file =~ ^Sources/($2)/ ]] && echo "$file imports $module: $3"
    done
    true
}

# nothing_but PLACE_PATTERN MODULE_PATTERN SENTENCE: prints other imports of the place.
nothing_but() {
    local file module
    while read -r file module; do
        [[ $file =~ ^Sources/($1)/ && ! $module =~ ^($2)$ ]] && echo "$file imports $module: $3"
    done
    true
}

check_targets() {
    local list
    list=$(imports "$1")
    only_in 'GRDB' 'KedgeSQLite|KedgeMigrations|KedgeClient/Store' \
        'SQLite stays behind its adapters' <<<"$list"
    only_in 'CCurl' 'KedgeCurl' 'libcurl stays behind KedgeCurl' <<<"$list"
    only_in 'CPostgres' 'KedgePostgres' 'libpq stays behind KedgePostgres' <<<"$list"
    only_in 'CMalloc' 'KedgeFiles' 'the allocator stays behind KedgeFiles' <<<"$list"
    # KedgeSecrets compares in constant time with libcrypto; it hashes with KedgeHash.
    only_in 'CCrypto' 'KedgeHash|KedgeSecrets' \
        'libcrypto stays behind KedgeHash and KedgeSecrets' <<<"$list"
    only_in 'CSHA256' 'KedgeHash' 'hashing stays behind KedgeHash' <<<"$list"
    only_in '_?NIO[A-Za-z0-9]*|Hummingbird[A-Za-z0-9]*' 'KedgeServer|KedgeTLS|kedge' \
        'the HTTP server stays in KedgeServer' <<<"$list"
    only_in 'NIOSSL|NIOTLS' 'KedgeTLS' 'TLS stays behind KedgeTLS' <<<"$list"
    only_in 'JWTKit' 'KedgeJWT' 'jwt-kit stays behind KedgeJWT' <<<"$list"
    nothing_but 'KedgeModel' 'no module at all' 'KedgeModel is values only' <<<"$list"
    nothing_but 'KedgeContainers' 'no module at all' 'KedgeContainers is values only' <<<"$list"
    nothing_but 'KedgeIdentity' 'Foundation|KedgeHash|KedgeModel|KedgeSecrets' \
        'KedgeIdentity is values only' <<<"$list"
    nothing_but 'KedgeJWT' \
        'Foundation|HTTPTypes|JWTKit|KedgeCurl|KedgeHash|KedgeIdentity|KedgeLocks|KedgeModel|KedgeSecrets|KedgeTransport|Logging' \
        'KedgeJWT knows the port and its providers' <<<"$list"
    nothing_but 'KedgeSecrets' 'CCrypto|KedgeHash|KedgeModel' 'KedgeSecrets has no I/O' <<<"$list"
    nothing_but 'KedgeMetrics' 'KedgeLocks' 'KedgeMetrics needs a lock and nothing else' <<<"$list"
    nothing_but 'KedgeTLS' 'KedgeFiles|KedgeLocks|KedgeModel|Logging|NIOCore|NIOSSL|NIOTLS' \
        'KedgeTLS knows files and connections' <<<"$list"
    nothing_but 'KedgeTransport' 'Foundation|HTTPTypes' 'KedgeTransport is a vocabulary' <<<"$list"
    nothing_but 'KedgePostgres' \
        'CPostgres|Dispatch|Foundation|Glibc|KedgeEngine|KedgeFiles|KedgeHash|KedgeIdentity|KedgeLocks|KedgeMetrics|KedgeModel' \
        'KedgePostgres knows the ports and libpq' <<<"$list"
    nothing_but 'KedgeS3' \
        'HTTPTypes|KedgeCurl|KedgeEngine|KedgeFiles|KedgeHash|KedgeLocks|KedgeMetrics|KedgeModel|KedgeSecrets|KedgeTransport|Glibc' \
        'KedgeS3 knows the ports and KedgeCurl' <<<"$list"
    nothing_but 'KedgeEngine' 'KedgeModel|KedgeFiles|KedgeHash|KedgeLocks|KedgeMetrics|Logging' \
        'KedgeEngine knows ports, not drivers' <<<"$list"
}

# Compares the uses below TREE with the list, in both directions.
check_unsafe() {
    local pattern='@unchecked[[:space:]]+Sendable|nonisolated\(unsafe\)|@preconcurrency'
    local line file count reason found
    declare -A allowed=()
    while IFS= read -r line; do
        [[ -z $line || $line == \#* ]] && continue
        IFS=: read -r file count reason <<<"$line"
        if [[ ! $count =~ ^[0-9]+$ || -z ${reason// /} ]]; then
            echo "$allowlist_path: \"$line\" is not file:count: reason"
            continue
        fi
        allowed[$file]=$count
    done <"$1/$allowlist_path"
    while IFS=: read -r file found; do
        count=${allowed[$file]:-0}
        unset "allowed[$file]"
        ((found == count)) ||
            echo "$file has $found unchecked promises to the compiler, the list says $count"
    done < <(
        cd "$1"
        grep -rlE --include='*.swift' "$pattern" Sources Tests | sort | while read -r file; do
            # Comments may talk about them.
            found=$(sed 's|//.*||' "$file" | grep -oE "$pattern" | wc -l)
            if ((found > 0)); then echo "$file:$found"; fi
        done
    )
    for file in "${!allowed[@]}"; do echo "$file: on the list, but has none"; done
}

check() {
    check_targets "$1"
    check_unsafe "$1"
}

# Plants one violation of each rule, and harmless look-alikes, in a tree of its own.
check_itself() {
    local tree expected found
    tree=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$tree'" EXIT
    plant() {
        mkdir -p "$tree/$(dirname "$1")"
        printf '%s\n' "$2" >>"$tree/$1"
    }
    plant Sources/KedgeEngine/A.swift '@preconcurrency internal import GRDB'
    plant Sources/KedgeModel/A.swift 'import Foundation'
    plant Sources/KedgeClient/A.swift 'package import struct GRDB.Row'
    plant Sources/KedgeDisk/A.swift '    @testable import CCrypto'
    plant Sources/KedgeDisk/A.swift 'internal import NIOCore'
    plant Sources/KedgeClient/B.swift 'internal import CCurl'
    plant Sources/KedgeServer/B.swift 'internal import CPostgres'
    plant Sources/KedgeServer/B.swift 'internal import JWTKit'
    plant Sources/KedgeJWT/A.swift 'internal import JWTKit'
    plant Sources/KedgeJWT/A.swift 'internal import KedgeServer'
    plant Sources/KedgePostgres/A.swift 'internal import CPostgres'
    plant Sources/KedgePostgres/A.swift 'internal import KedgeCurl'
    plant Sources/KedgeS3/A.swift 'internal import KedgeCurl'
    plant Sources/KedgeS3/A.swift 'internal import KedgeSQLite'
    plant Sources/KedgeIdentity/A.swift 'internal import KedgeEngine'
    plant Sources/KedgeIdentity/A.swift 'package import KedgeSecrets'
    plant Sources/KedgeSecrets/A.swift 'internal import CCrypto'
    plant Sources/KedgeSecrets/A.swift 'internal import CSHA256'
    plant Sources/KedgeMetrics/A.swift 'internal import KedgeLocks'
    plant Sources/KedgeMetrics/A.swift 'internal import Foundation'
    plant Sources/KedgeServer/C.swift 'internal import NIOSSL'
    plant Sources/KedgeTLS/A.swift 'internal import NIOSSL'
    plant Sources/KedgeTLS/A.swift 'internal import Hummingbird'
    plant Sources/KedgeTransport/A.swift 'public import HTTPTypes'
    plant Sources/KedgeTransport/A.swift 'internal import KedgeModel'
    plant Sources/KedgeHash/A.swift 'final class C: @unchecked Sendable {} // known'
    plant Sources/KedgeHash/A.swift 'nonisolated(unsafe) var x = 0'
    plant Sources/KedgeClient/Store/A.swift 'internal import GRDB'
    plant Sources/KedgeServer/A.swift 'internal import Hummingbird'
    plant Sources/KedgeEngine/B.swift '// import GRDB is not an import, @unchecked Sendable no use'
    plant Sources/KedgeEngine/B.swift 'package import KedgeModel'
    plant Tests/X/A.swift 'let text = "harmless"'
    plant "$allowlist_path" '# comment'
    plant "$allowlist_path" 'Sources/KedgeHash/A.swift:1: one of the two'
    plant "$allowlist_path" 'Sources/KedgeHash/Gone.swift:1: removed since'
    expected=$(sort <<'EXPECTED'
Sources/KedgeClient/A.swift imports GRDB: SQLite stays behind its adapters
Sources/KedgeClient/B.swift imports CCurl: libcurl stays behind KedgeCurl
Sources/KedgeDisk/A.swift imports CCrypto: libcrypto stays behind KedgeHash and KedgeSecrets
Sources/KedgeDisk/A.swift imports NIOCore: the HTTP server stays in KedgeServer
Sources/KedgeEngine/A.swift has 1 unchecked promises to the compiler, the list says 0
Sources/KedgeEngine/A.swift imports GRDB: KedgeEngine knows ports, not drivers
Sources/KedgeEngine/A.swift imports GRDB: SQLite stays behind its adapters
Sources/KedgeHash/A.swift has 2 unchecked promises to the compiler, the list says 1
Sources/KedgeHash/Gone.swift: on the list, but has none
Sources/KedgeIdentity/A.swift imports KedgeEngine: KedgeIdentity is values only
Sources/KedgeMetrics/A.swift imports Foundation: KedgeMetrics needs a lock and nothing else
Sources/KedgeJWT/A.swift imports KedgeServer: KedgeJWT knows the port and its providers
Sources/KedgeModel/A.swift imports Foundation: KedgeModel is values only
Sources/KedgePostgres/A.swift imports KedgeCurl: KedgePostgres knows the ports and libpq
Sources/KedgeS3/A.swift imports KedgeSQLite: KedgeS3 knows the ports and KedgeCurl
Sources/KedgeSecrets/A.swift imports CSHA256: KedgeSecrets has no I/O
Sources/KedgeSecrets/A.swift imports CSHA256: hashing stays behind KedgeHash
Sources/KedgeServer/B.swift imports CPostgres: libpq stays behind KedgePostgres
Sources/KedgeServer/C.swift imports NIOSSL: TLS stays behind KedgeTLS
Sources/KedgeTLS/A.swift imports Hummingbird: KedgeTLS knows files and connections
Sources/KedgeServer/B.swift imports JWTKit: jwt-kit stays behind KedgeJWT
Sources/KedgeTransport/A.swift imports KedgeModel: KedgeTransport is a vocabulary
EXPECTED
    )
    found=$(check "$tree" | sort)
    if [[ $found != "$expected" ]]; then
        echo "the check does not find what was planted:" >&2
        diff <(echo "$expected") <(echo "$found") >&2 || true
        exit 1
    fi
}

check_itself
violations=$(check "$root")
if [[ -n $violations ]]; then
    echo "$violations" >&2
    exit 1
fi
echo "imports: as they should be"
