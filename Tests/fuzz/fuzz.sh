#!/usr/bin/env bash
# Builds the parsers with the sanitizers of addresses and fuzzes each of them for its share of the time.
#
#   fuzz.sh SECONDS [TARGET...]   all targets, or those named
#
# Inputs that are worth keeping stay in .build-fuzz/corpus; one that breaks a promise is left in
# .build-fuzz/failures, and its name is printed. Add it to Tests/fuzz/seeds once it is understood.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:?usage: fuzz.sh SECONDS [TARGET...]}
shift
build=.build-fuzz
# Warnings are the normal build's matter; the language mode and features are the manifest's.
flags=(-swift-version 6 -package-name main -O -gline-tables-only -parse-as-library -wmo -sanitize=fuzzer,address
    -use-ld=lld -suppress-warnings -I "$build" -I Sources/CCurl)
for feature in ExistentialAny InternalImportsByDefault MemberImportVisibility \
    NonisolatedNonsendingByDefault InferIsolatedConformances ImmutableWeakCaptures; do
    flags+=(-enable-upcoming-feature "$feature")
done
# Parsers of other targets that need no more than the two modules, libcurl and Foundation.
parsers=(
    Sources/KedgeServer/HTTP/{ContentDisposition,EntityTags,RangeHeader}.swift
    Sources/KedgeCurl/{ResponseHeadParser,URLOrigin}.swift
    Sources/KedgeTransport/URLText.swift
    Sources/KedgeClient/Model/{RangeValidator,RemoteFile}.swift
    Sources/KedgeClient/Download/RangeResponseCheck.swift
    Sources/kedge/Terminal/{PrintableText,ShellText}.swift
    Sources/migration-embedder/MigrationName.swift
)

# compile_module NAME FOLDER: the sources below the folder as a module with its object beside it.
compile_module() {
    find "$2" -name '*.swift' -print0 | sort -z |
        xargs -0 swiftc "${flags[@]}" -module-name "$1" -emit-module \
            -emit-module-path "$build/$1.swiftmodule" -emit-object -o "$build/$1.o"
}

compile() {
    local http_types=.build/checkouts/swift-http-types/Sources/HTTPTypes
    [[ -d $http_types ]] || swift package resolve
    mkdir -p "$build"
    compile_module KedgeModel Sources/KedgeModel
    compile_module HTTPTypes "$http_types"
    # shellcheck disable=SC2046
    swiftc "${flags[@]}" -module-name KedgeFuzz Tests/fuzz/harness/*.swift "${parsers[@]}" \
        "$build"/{KedgeModel,HTTPTypes}.o $(pkg-config --libs libcurl) -o "$build/kedge-fuzz"
}

# Writes each line of a seed file, with its escapes (\n, \t, \0NNN) resolved, to a file of its own.
write_seeds() {
    local number=0 line
    mkdir -p "$build/seeds/$1"
    while IFS= read -r line; do
        number=$((number + 1))
        printf '%b' "$line" >"$build/seeds/$1/$number"
    done <"Tests/fuzz/seeds/$1.txt"
}

# fuzz TARGET SECONDS: the kept inputs first, then new ones.
fuzz() {
    local corpus=$build/corpus/$1 failures=$build/failures/$1
    mkdir -p "$corpus" "$failures"
    write_seeds "$1"
    echo "==> $1: $2 s"
    # No backtraces of Swift's own: reading the stack for them upsets the sanitizer.
    SWIFT_BACKTRACE=enable=no KEDGE_FUZZ_TARGET=$1 "$build/kedge-fuzz" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 \
        -max_len=4096 -len_control=20 -use_value_profile=1 -print_final_stats=1 -verbosity=0 \
        -dict=Tests/fuzz/wire.dict -artifact_prefix="$failures/" "$corpus" "$build/seeds/$1" \
        >"$build/$1.log" 2>&1 || {
        grep -aE 'Fatal error|ERROR:|SUMMARY|Test unit written|Base64' "$build/$1.log" >&2
        return 1
    }
    grep -aE 'number_of_executed_units|slowest_unit_time' "$build/$1.log"
}

compile
targets=("$@")
if ((${#targets[@]} == 0)); then
    for file in Tests/fuzz/seeds/*.txt; do targets+=("$(basename "$file" .txt)"); done
fi
share=$((seconds / ${#targets[@]}))
failed=()
for target in "${targets[@]}"; do
    fuzz "$target" "$((share > 0 ? share : 1))" || failed+=("$target")
done
if ((${#failed[@]} > 0)); then
    echo "promises broken: ${failed[*]}" >&2
    exit 1
fi
