#!/usr/bin/env bash
# Proves that the client library works as a dependency: builds a package with the lines and the function that
# README.md shows against the present sources, uploads a file with it, and compares what the service has.
#
#   check_library.sh BINARY [DIRECTORY]
#
# BINARY is the service. DIRECTORY keeps what was built of other packages for the next run; without it the
# build starts from nothing. Packages come from the cache of the package manager, at the versions in
# Package.resolved if that file is there; what is missing is fetched.
set -euo pipefail

binary=$(realpath "${1:?usage: check_library.sh BINARY [DIRECTORY]}")
kept=${2:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/Tests/support/server.sh"

scratch=$(mktemp -d)
trap 'stop_server || true; rm -rf "$scratch"' EXIT
if [[ -n $kept ]]; then
    mkdir -p "$kept"
    kept=$(realpath "$kept")
else
    kept=$scratch/kept
    mkdir "$kept"
fi
fail() {
    echo "$*" >&2
    exit 1
}

# block NUMBER: a fenced block of the section of README.md.
block() {
    sed -n '/^## Library$/,/^## Beside others$/p' "$root/README.md" |
        awk -v wanted="$1" '/^```swift$/ { number++; inside = 1; next } /^```$/ { inside = 0 }
            inside && number == wanted'
}
# replaced OLD NEW: standard input with one text for the other; without the old text the example has changed.
replaced() {
    local text
    text=$(cat)
    [[ $text == *"$1"* ]] || fail "the example in README.md has no $1"
    printf '%s\n' "${text//"$1"/$2}"
}

# A clone with everything that would be committed, at an address of its own: the package manager takes a
# clone that it knows for unchanged, as it is not asked to update any.
find "$kept" -maxdepth 1 -name 'source.*' -exec rm -rf {} +
source_directory=$(mktemp -d "$kept/source.XXXXXX")/kedge
mkdir "$source_directory"
list_files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard -z
    else
        find . -path './.?*' -prune -o -type f -print0
    fi
}
# A file that was deleted and not yet committed is listed, too.
(cd "$root" && list_files | while IFS= read -r -d '' file; do
    if [[ -e $file ]]; then printf '%s\0' "$file"; fi
done | tar --create --null --files-from=- --file=-) | tar --extract --directory "$source_directory"
git_in_source() {
    git -C "$source_directory" -c user.name=test -c user.email=test@example.org -c commit.gpgsign=false "$@"
}
git_in_source init --quiet --initial-branch=main
git_in_source add --all
git_in_source commit --quiet --message "sources"

start_server "$binary" "$scratch"
program=$kept/send
mkdir -p "$program/Sources/send"
lines=$(block 1 | replaced https://github.com/kedge/kedge "file://$source_directory")
cat >"$program/Package.swift" <<MANIFEST
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "send",
    dependencies: [
$(grep '^\.package(' <<<"$lines")
    ],
    targets: [
        .executableTarget(
            name: "send",
            dependencies: [
$(grep '^\.product(' <<<"$lines")
            ])
    ])
MANIFEST
{
    block 2
    cat <<PROGRAM

let result = try await send("video.mp4", to: ClientConfiguration(serverURL: "$server_url"))
print(result.state, result.remoteFileID ?? "-")
PROGRAM
} >"$program/Sources/send/main.swift"
rm -f "$program/Package.resolved"
if [[ -f $root/Package.resolved ]]; then cp "$root/Package.resolved" "$program/Package.resolved"; fi

# A copy of the cache: the clone above would stay in the user's own.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/org.swift.swiftpm
if [[ ! -d $kept/cache && -d $cache/repositories ]]; then
    mkdir "$kept/cache"
    cp --archive --reflink=auto "$cache/repositories" "$kept/cache/repositories"
    # Clones of another run with the user's cache.
    rm -rf "$kept"/cache/repositories/kedge-*
fi
options=(--package-path "$program" --scratch-path "$kept/build" --cache-path "$kept/cache" --skip-update)
timeout --kill-after=30s 30m swift build "${options[@]}" --product send
executable=$(swift build "${options[@]}" --show-bin-path)/send

head --bytes=5000001 /dev/urandom >"$scratch/video.mp4"
result=$(cd "$scratch" && env --ignore-environment PATH="$PATH" HOME="$scratch" \
    timeout --kill-after=5s 60s "$executable")
[[ $result =~ ^completed\ ([0-9a-f]+)$ ]] || fail "the program printed: $result"
curl --silent --show-error --fail --max-time 60 "$server_url/files/${BASH_REMATCH[1]}" |
    cmp - "$scratch/video.mp4" || fail "the service has other bytes than the file"
stop_server
echo "the function of README.md uploads with the client library"
