# Functions of chunk_sizes.sh. Sourced, not run, after Tests/support/server.sh; the sourcing script sets
# binary (the command) and scratch (a directory).
# shellcheck shell=bash

client_pid=""

# calc EXPRESSION [DIGITS]: arithmetic with fractions.
calc() { awk "BEGIN { printf(\"%.${2:-1}f\", ($1)) }"; }

# member NAME: the value of a member in the last JSON line of standard input.
member() { tail -n 1 | sed -nE "s/.*\"$1\":\"?([^,\"}]*).*/\1/p"; }

# peak PID: largest resident size so far, in KiB; nothing when the process is gone.
peak() { awk '/^VmHWM:/ { print $2 }' "/proc/$1/status" 2>/dev/null || true; }

# client ARGUMENT…: runs the command; sets elapsed, client_peak and answer (its JSON lines).
client() {
    local began=$EPOCHREALTIME status=0 sample
    env --ignore-environment PATH="$PATH" HOME="$scratch" XDG_STATE_HOME="$scratch/state" \
        "$binary" "$@" --server "$server_url" --json >"$scratch/answer" 2>"$scratch/talk" &
    client_pid=$!
    client_peak=0
    while kill -0 "$client_pid" 2>/dev/null; do
        sample=$(peak "$client_pid")
        if [[ -n $sample ]]; then client_peak=$sample; fi
        sleep 0.05
    done
    wait "$client_pid" || status=$?
    client_pid=""
    elapsed=$(calc "$EPOCHREALTIME - $began" 3)
    if ((status != 0)); then
        echo "bench: kedge $1 ended with status $status" >&2
        cat "$scratch/talk" >&2
        exit 1
    fi
    answer=$(tail -n 1 "$scratch/answer")
}

make_random_file() { head -c "$2" /dev/urandom >"$1"; }
