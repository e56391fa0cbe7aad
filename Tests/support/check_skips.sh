#!/usr/bin/env bash
# Proves that a check which cannot run fails the build, unless skipping it was asked for by name.
#
#   check_skips.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tests=$(dirname "$here")
unset ALLOW_SKIP

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# expect STATUS TEXT COMMAND…: the command ends with the status, and says the text.
expect() {
    local wanted=$1 text=$2 status=0
    shift 2
    "$@" >"$scratch/output" 2>&1 || status=$?
    if ((status != wanted)) || ! grep -qF "$text" "$scratch/output"; then
        echo "$*: ended with $status, not $wanted, or does not say \"$text\":" >&2
        cat "$scratch/output" >&2
        exit 1
    fi
}

expect 77 "SKIPPED some-name: some reason" bash -c "source '$here/skip.sh'; skip some-name some reason"
expect 77 "SKIPPED some-name" env ALLOW_SKIP="some-name-more some" \
    bash -c "source '$here/skip.sh'; skip some-name some reason"
expect 0 "SKIPPED some-name" env ALLOW_SKIP="other some-name" \
    bash -c "source '$here/skip.sh'; skip some-name some reason"
python="import sys; sys.path.insert(0, '$here'); from skipping import skipped; sys.exit(skipped('a-b', 'why'))"
expect 77 "SKIPPED a-b: why" python3 -c "$python"
expect 0 "SKIPPED a-b: why" env ALLOW_SKIP="a-b" python3 -c "$python"

# A stand-in prints what a test run prints.
cat >"$scratch/swift" <<'SWIFT'
#!/bin/sh
cat "$SWIFT_OUTPUT"
SWIFT
chmod +x "$scratch/swift"
swift_tests() { env PATH="$scratch:$PATH" SWIFT_OUTPUT="$scratch/swift-output" "$here/swift_test.sh"; }
echo '✔ Test "a file is skipped: twice" passed after 0.1 seconds.' >"$scratch/swift-output"
expect 0 "passed" swift_tests
echo '➜ Test "a disk fills up" skipped: "mounts: not permitted"' >>"$scratch/swift-output"
expect 77 "SKIPPED mounts: not permitted" swift_tests
ALLOW_SKIP="mounts" expect 0 "SKIPPED mounts: not permitted" swift_tests
echo '➜ Test "a vector" skipped: "avx512: not on this processor"' >>"$scratch/swift-output"
ALLOW_SKIP="mounts" expect 77 "SKIPPED avx512: not on this processor" swift_tests
ALLOW_SKIP="mounts avx512" expect 0 "SKIPPED avx512: not on this processor" swift_tests
echo '➜ Suite FailingTests skipped.' >>"$scratch/swift-output"
ALLOW_SKIP="mounts avx512" expect 77 "SKIPPED unnamed: no reason is given" swift_tests

# The power cuts, where nothing they need is on the path.
mkdir "$scratch/bin"
for tool in bash dirname mktemp env cat rm; do ln -s "$(command -v "$tool")" "$scratch/bin/$tool"; done
ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$scratch/bin/python3"
expect 77 "SKIPPED power-cuts: " env PATH="$scratch/bin" "$tests/powercut/gate.sh" /bin/false
expect 0 "SKIPPED power-cuts: " env PATH="$scratch/bin" ALLOW_SKIP="power-cuts power-cuts-xfs power-cuts-btrfs" \
    "$tests/powercut/gate.sh" /bin/false
echo "what cannot run fails the build unless it was allowed by name"
