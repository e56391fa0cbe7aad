# Functions that start and stop a Kedge server for a script. Sourced, not run.
#
#   start_server BINARY DIRECTORY [OPTION…]   serves on a free port; sets server_url and server_pid;
#                                             data and log go below DIRECTORY
#   stop_server                               ends it gently and waits; does nothing when none runs
# shellcheck shell=bash

server_pid=""
server_url=""

# A port that is free now. Another process may take it before the server does; starting then fails
# aloud, and nothing waits for it.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start_server() {
    local binary=$1 directory=$2 port
    shift 2
    port=$(free_port)
    server_url="http://127.0.0.1:$port"
    # Settings in the caller's environment must not change what is measured or tested.
    env --ignore-environment PATH="$PATH" HOME="$directory" \
        "$binary" serve --host 127.0.0.1 --port "$port" --data "$directory/data" "$@" \
        >"$directory/server.log" 2>&1 &
    server_pid=$!
    local attempt
    for attempt in $(seq 1 100); do
        if curl --silent --fail --max-time 1 "$server_url/readyz" >/dev/null; then return 0; fi
        if ! kill -0 "$server_pid" 2>/dev/null; then break; fi
        sleep 0.1
    done
    echo "the server did not start (attempt $attempt); its log:" >&2
    cat "$directory/server.log" >&2
    return 1
}

stop_server() {
    [[ -n $server_pid ]] || return 0
    local pid=$server_pid status=0
    server_pid=""
    kill -TERM "$pid" 2>/dev/null || true
    # The drain has its own bound; this one is for a server that does not keep it.
    timeout 60 tail --pid="$pid" -f /dev/null || kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" || status=$?
    if ((status != 0)); then echo "the server ended with status $status" >&2; fi
    return "$status"
}
