#!/usr/bin/env bash
# Proves that make install puts everything in place, that the tools which read the files accept them,
# and that make uninstall leaves nothing behind.
#
#   check_files.sh BINARY
set -euo pipefail

binary=$(realpath "${1:?usage: check_files.sh BINARY}")
cd "$(dirname "$0")/../.."
PATH="$PATH:/usr/sbin:/sbin"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
    echo "$*" >&2
    exit 1
}

# Twice: nothing in the files may depend on the moment.
stage=$scratch/stage prefix=/opt/kedge
run_make() { make --no-print-directory "$@" BINARY="$binary" PREFIX=$prefix >/dev/null; }
run_make install DESTDIR="$stage"
run_make install DESTDIR="$scratch/again"
diff --recursive --brief "$stage" "$scratch/again" || fail "a second installation differs"
root=$stage$prefix
"$root/bin/kedge" --version >/dev/null || fail "the installed command does not run"

# Manual pages: one for each subcommand, and both formatters read them without a warning.
"$binary" --experimental-dump-help | python3 -c '
import json, sys
top = json.load(sys.stdin)["command"]
print("kedge.1")
for command in top["subcommands"]:
    if command["commandName"] != "help":
        print("kedge-" + command["commandName"] + ".1")' | sort >"$scratch/expected"
(cd "$root/share/man/man1" && printf '%s\n' *) | sort | diff "$scratch/expected" - ||
    fail "the manual pages are not those of the subcommands"
for page in "$root"/share/man/man1/*.1; do
    for title in NAME SYNOPSIS DESCRIPTION "EXIT STATUS" ENVIRONMENT FILES "SEE ALSO"; do
        grep -q "^\.SH \"$title\"" "$page" || fail "$page has no section $title"
    done
    mandoc -T lint "$page" || fail "$page: mandoc complains"
    warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 \
        man --warnings -E UTF-8 --local-file -Tutf8 -Z "$page" 2>&1 >/dev/null)
    [[ -z $warnings ]] || fail "$page: $warnings"
    # A hyphen that is not escaped becomes a typographic one in some formatters: an option that was copied from
    # the page would then not be one. The first two lines are a comment and the date.
    if tail -n +3 "$page" | grep -nE '(^|[^\\])-'; then fail "$page: hyphens that are not escaped"; fi
    LC_ALL=C.UTF-8 MANWIDTH=1000 man --local-file "$page" | col -b >"$scratch/${page##*/}.txt"
done
lexgrog "$root"/share/man/man1/*.1 >/dev/null || fail "whatis cannot read a page"

# Every option, exit status and variable is in the pages as it is typed.
"$binary" --experimental-dump-help | python3 -c '
import json, sys
def options(command):
    for argument in command.get("arguments", []):
        if argument.get("shouldDisplay", True):
            yield from ("-" * min(len(n["name"]), 2) + n["name"] for n in argument.get("names", []))
    for child in command.get("subcommands", []):
        yield from options(child)
for command in json.load(sys.stdin)["command"]["subcommands"]:
    if command["commandName"] != "help":
        for option in sorted(set(options(command)) - {"-h", "--help", "--version"}):
            print(command["commandName"], option)' >"$scratch/options"
while read -r command option; do
    grep -qE -- "(^| )$option( |,|$)" "$scratch/kedge-$command.1.txt" || fail "kedge-$command(1) lacks $option"
done <"$scratch/options"
statuses=$(sed -n '/^public enum ExitStatus/,/^}/s/.*: Int32 = \([0-9]*\)$/\1/p' \
    Sources/KedgeModel/Errors/ErrorCode.swift)
for status in $statuses; do
    grep -qE "^ +$status +[A-Z]" "$scratch/kedge.1.txt" || fail "kedge(1) lacks exit status $status"
done
variables=$(grep -rhoE 'environment\["[A-Za-z_0-9]+"\]' Sources --include='*.swift' | cut -d '"' -f 2 | sort -u)
for variable in $variables; do
    grep -qw -- "$variable" "$scratch/kedge.1.txt" || fail "kedge(1) lacks the variable $variable"
done

# Completions: each shell that is here parses its own.
bash -n "$root/share/bash-completion/completions/kedge"
checked=bash
for shell in zsh:zsh/site-functions/_kedge fish:fish/vendor_completions.d/kedge.fish; do
    if command -v "${shell%%:*}" >/dev/null; then
        "${shell%%:*}" -n "$root/share/${shell#*:}"
        checked+=", ${shell%%:*}"
    fi
done
# A completion knows the subcommands, so it is that of this command.
for file in bash-completion/completions/kedge zsh/site-functions/_kedge fish/vendor_completions.d/kedge.fish; do
    grep -q transfers "$root/share/$file" || fail "$file does not complete subcommands"
done

# Units: systemd verifies them, and they start the command where it was installed.
for unit in system/kedge.service user/kedge-resume.service; do
    file=$root/lib/systemd/$unit
    grep -q "^ExecStart=$prefix/bin/kedge " "$file" || fail "$unit does not start $prefix/bin/kedge"
    mkdir -p "$scratch/units" "$scratch/runtime"
    sed "s|^ExecStart=$prefix/bin/kedge|ExecStart=/bin/true|" "$file" >"$scratch/units/${unit#*/}"
    # The manual pages are not installed where man looks. A line that systemd ignores is only a warning.
    complaint=$(XDG_RUNTIME_DIR=$scratch/runtime systemd-analyze "--${unit%%/*}" verify --man=no \
        "$scratch/units/${unit#*/}" 2>&1) || fail "$unit: $complaint"
    [[ -z $complaint ]] || fail "$unit: $complaint"
done
if grep -rl "/usr/bin/kedge" "$root/lib" "$root/share/man"; then fail "a file names another prefix"; fi

for file in LICENSE README.md CHANGELOG.md examples/kedge.example.yaml; do
    [[ -s $root/share/doc/kedge/$file ]] || fail "$file is not installed"
done
unreadable=$(find "$stage" ! -perm -o=r)
[[ -z $unreadable ]] || fail "not readable for all: $unreadable"

run_make uninstall DESTDIR="$stage"
left=$(find "$stage" ! -type d)
[[ -z $left ]] || fail "make uninstall leaves $left"
echo "make install: $(wc -l <"$scratch/expected") manual pages, completions ($checked), units, and uninstall"
