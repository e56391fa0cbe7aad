#!/usr/bin/env bash
# Checks text files for what no formatter sees: paths of somebody's machine, spaces at line ends, tabs,
# foreign line ends, a missing last newline, and secrets that were pasted by mistake.
set -euo pipefail
cd "$(dirname "$0")/../.."

failed=0
complain() {
    echo "$1" >&2
    failed=1
}

# Tracked files and those that would be; outside a clone, everything that is not built.
list_files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard
    else
        find . -path './.*' -prune -o -type f -print | sed 's|^\./||'
    fi
}

# Home and work directories name a machine. The pattern is put together so that it is not found here.
machine_paths="(^|[^[:alnum:]_.~-])/(ho""me/[a-z]|ro""ot/|Us""ers/[A-Za-z]|wo""rk/|mnt/|private/)"
secrets="-----BEGIN [A-Z ]*PRIVATE"" KEY-----|AKIA[0-9A-Z]{16}"

while IFS= read -r file; do
    [[ -f $file && ! -L $file ]] || continue
    # Binary files have no lines.
    if [[ -s $file ]] && ! grep -qI '' "$file"; then continue; fi
    if hits=$(grep -nE "$machine_paths" "$file"); then complain "$file: a path of one machine: $hits"; fi
    if hits=$(grep -nE -e "$secrets" "$file"); then complain "$file: a secret"; fi
    if hits=$(grep -nE '[[:space:]]+$' "$file"); then complain "$file: space at a line's end: $hits"; fi
    if grep -q $'\r' "$file"; then complain "$file: line ends with a carriage return"; fi
    if [[ $file != Makefile ]] && hits=$(grep -n $'\t' "$file"); then complain "$file: a tab: $hits"; fi
    if [[ -s $file && -n $(tail -c 1 "$file") ]]; then complain "$file: no newline at the end"; fi
done < <(list_files)

if ((failed)); then exit 1; fi
echo "text files: clean"
