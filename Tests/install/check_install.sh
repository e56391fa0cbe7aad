#!/usr/bin/env bash
# Proves that a static program takes our empty data of ICU, that what Kedge and its packages need of
# Foundation works with it, and that an installed binary is small and its symbols are beside it.
#
#   check_install.sh
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

clang -Wall -Werror -O1 -c -I "$root/Sources/CICUStubData/include" \
    "$root/Sources/CICUStubData/icu_stub_data.c" -o "$scratch/stub.o"
# The package manager links so for release too: a build id comes with it.
swiftc -static-stdlib -use-ld=lld -Xlinker --build-id -Xlinker --no-export-dynamic \
    "$root/Tests/install/foundation_without_icu_data.swift" "$scratch/stub.o" -o "$scratch/program"
for zone in UTC Europe/Berlin nonsense; do
    TZ=$zone LANG=de_DE.UTF-8 "$scratch/program"
done

"$root/.ci/install-binary" "$scratch/program" "$scratch/usr" >/dev/null
installed=$scratch/usr/bin/kedge
[[ $(stat --format=%a "$installed") == 755 ]] || fail "the installed binary is not executable for all"
"$installed" >/dev/null
size=$(stat --format=%s "$installed")
((size < 30000000)) || fail "$size bytes: the data of ICU is in it. Has its name another number now?"
[[ -z $(nm "$installed" 2>/dev/null) ]] || fail "the installed binary has symbols"

build_id=$(LC_ALL=C readelf --notes "$installed" | sed -n 's/^ *Build ID: //p')
symbols=$scratch/usr/lib/debug/.build-id/${build_id:0:2}/${build_id:2}.debug
nm "$symbols" | grep icudt76_dat >/dev/null || fail "no symbols in $symbols"

echo "static program of $((size / 1000000)) MB, symbols beside it"
