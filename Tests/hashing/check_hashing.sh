#!/usr/bin/env bash
# Proves that every path of CSHA256 computes SHA-256, with and without the compiler's optimization: those
# of this processor, and under emulation those of processors with fewer instructions and of arm64.
#
#   check_hashing.sh
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/Tests/support/skip.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sources=("$root"/Sources/CSHA256/*.c "$root/Tests/hashing/pair_driver.c")
compiler=$(command -v clang || command -v cc)
arm64_linker=aarch64-linux-gnu-gcc
wrapping=-Wl,--wrap=getauxval

# compile COMMAND…: compiles all sources, and leaves the objects in $scratch.
compile() {
    local source
    for source in "${sources[@]}"; do
        "$@" -std=c11 -Wall -Wextra -Werror -Wno-unknown-pragmas -I "$root/Sources/CSHA256/include" \
            -c "$source" -o "$scratch/$(basename "$source" .c).o"
    done
}

# has FLAG…: this processor has these features, in the words of Linux.
has() {
    local flag
    for flag in "$@"; do grep -qw "$flag" /proc/cpuinfo || return 1; done
}

names=()
if has sha_ni sse4_1 ssse3; then names+=(sha-ni); fi
if has avx2 avx512f avx512vl; then names+=(avx512); fi
if has avx2; then names+=(avx2); fi
if has sha2; then names+=(armv8); fi
checking=(-fsanitize=undefined -fsanitize-undefined-trap-on-error)
echo "this processor, without optimization:"
compile "$compiler" -O0 "${checking[@]}"
"$compiler" -static "$wrapping" "$scratch"/*.o -o "$scratch/driver"
"$scratch/driver" "${names[@]}"
echo "this processor, with optimization:"
compile "$compiler" -O2
"$compiler" -static "$wrapping" "$scratch"/*.o -o "$scratch/driver"
"$scratch/driver" "${names[@]}"

for tool in qemu-x86_64 qemu-aarch64 "$arm64_linker"; do
    command -v "$tool" >/dev/null || skip processor-emulation "$tool is not installed"
done
# emulate PROGRAM PROCESSOR NAME…: runs the driver on an emulated processor that supports these paths.
emulate() {
    echo "emulated $2:"
    "$1" -cpu "$2" "$scratch/driver" "${@:3}"
}
if [[ $(uname -m) == x86_64 ]]; then
    fewer=max,-sha-ni,-avx512f
    emulate qemu-x86_64 "$fewer" avx2
    emulate qemu-x86_64 "$fewer,-avx2"
    # The system does not save the state of AVX.
    emulate qemu-x86_64 "$fewer,-xsave"
fi
# The compiler of Swift packages also makes code for other processors.
cross=("$arm64_linker")
if [[ $compiler == *clang ]]; then cross=("$compiler" --target=aarch64-linux-gnu); fi
for level in -O0 -O2; do
    compile "${cross[@]}" "$level"
    "$arm64_linker" -static "$wrapping" "$scratch"/*.o -o "$scratch/driver"
    emulate qemu-aarch64 max armv8
    emulate qemu-aarch64 cortex-a53 armv8
done
