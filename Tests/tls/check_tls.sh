#!/usr/bin/env bash
# Checks TLS of the service from outside: the versions and ciphers that it accepts, its certificate being
# exchanged by SIGHUP under four uploads and four downloads, and its end beside idle connections.
#
#   check_tls.sh BINARY
#
# nmap lists versions and ciphers where it is installed; otherwise openssl tries the weak ones.
set -euo pipefail

binary=$(realpath "$1")
scratch=$(mktemp -d)
server_pid=""
idle_pid=""

cleanup() {
    [[ -z $idle_pid ]] || kill "$idle_pid" 2>/dev/null || true
    [[ -z $server_pid ]] || kill -KILL "$server_pid" 2>/dev/null || true
    rm -rf "$scratch"
}
trap cleanup EXIT

fail() {
    echo "$*" >&2
    echo "the log of the service:" >&2
    tail -n 40 "$scratch/server.log" >&2 || true
    exit 1
}

curve=(ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)

make_authority() {
    openssl req -x509 -newkey "${curve[@]}" -keyout "$scratch/ca.key" -out "$scratch/ca.pem" -days 2 \
        -subj "/CN=authority of a test" 2>/dev/null
    echo "subjectAltName=DNS:localhost,IP:127.0.0.1" >"$scratch/names"
}

# issue NAME SERIAL: a certificate and its key, NAME.pem and NAME.key.
issue() {
    openssl req -newkey "${curve[@]}" -keyout "$scratch/$1.key" -out "$scratch/$1.csr" \
        -subj "/CN=localhost" 2>/dev/null
    openssl x509 -req -in "$scratch/$1.csr" -CA "$scratch/ca.pem" -CAkey "$scratch/ca.key" \
        -set_serial "0x$2" -extfile "$scratch/names" -days 2 -out "$scratch/$1.pem" 2>/dev/null
}

# Puts a pair in place as a deploy hook does: each file appears at once.
install_pair() {
    install -m 0600 "$scratch/$1.key" "$scratch/live.key.new"
    install -m 0644 "$scratch/$1.pem" "$scratch/live.pem.new"
    mv "$scratch/live.key.new" "$scratch/live.key"
    mv "$scratch/live.pem.new" "$scratch/live.pem"
}

start_server() {
    local attempt
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    url="https://localhost:$port"
    env --ignore-environment PATH="$PATH" HOME="$scratch" \
        "$binary" serve --port "$port" --data "$scratch/data" \
        --tls-certificate "$scratch/live.pem" --tls-key "$scratch/live.key" \
        >"$scratch/server.log" 2>&1 &
    server_pid=$!
    for attempt in $(seq 1 100); do
        if ask --fail --output /dev/null "$url/readyz" 2>/dev/null; then return 0; fi
        kill -0 "$server_pid" 2>/dev/null || break
        sleep 0.1
    done
    fail "the service did not start (attempt $attempt)"
}

ask() { curl --silent --show-error --max-time 60 --cacert "$scratch/ca.pem" "$@"; }

# shakes_hands OPTION…: whether openssl and the service agree.
shakes_hands() {
    openssl s_client -connect "127.0.0.1:$port" -CAfile "$scratch/ca.pem" "$@" </dev/null \
        >"$scratch/handshake" 2>&1 || true
    grep -q 'Verify return code: 0' "$scratch/handshake" &&
        ! grep -q 'Cipher is (NONE)' "$scratch/handshake"
}

serial() {
    openssl s_client -connect "127.0.0.1:$port" </dev/null 2>/dev/null |
        openssl x509 -noout -serial | sed 's/serial=//' | tr '[:upper:]' '[:lower:]'
}

check_weak_versions() {
    local version cipher
    for version in tls1_2 tls1_3; do
        shakes_hands "-$version" || fail "$version is not accepted"
    done
    for version in tls1 tls1_1; do
        ! shakes_hands "-$version" -cipher 'ALL:@SECLEVEL=0' || fail "$version is accepted"
    done
    for cipher in ECDHE-ECDSA-AES128-SHA ECDHE-ECDSA-AES256-SHA384 AES128-GCM-SHA256 NULL aNULL; do
        ! shakes_hands -tls1_2 -cipher "$cipher:@SECLEVEL=0" || fail "$cipher is accepted"
    done
    echo "tls: only 1.2 and 1.3, and no weak ciphers"
}

check_with_nmap() {
    local report
    report=$(nmap -Pn -p "$port" --script ssl-enum-ciphers 127.0.0.1)
    grep -q 'TLSv1.2' <<<"$report" || fail "nmap sees no TLS: $report"
    ! grep -qE 'SSLv|TLSv1\.[01]' <<<"$report" || fail "old versions: $report"
    ! grep -qE ' - [B-F]$' <<<"$report" || fail "weak ciphers: $report"
    grep -q 'least strength: A' <<<"$report" || fail "weak: $report"
    echo "tls: nmap gives grade A"
}

# Transfers until the file `stop` appears; a failure is written to `failures`.
upload_again() {
    while [[ ! -e $scratch/stop ]]; do
        ask --fail --data-binary "@$scratch/source" --limit-rate 4M --output /dev/null "$url/files" \
            2>>"$scratch/failures" || return 0
    done
}

download_again() {
    while [[ ! -e $scratch/stop ]]; do
        ask --fail --limit-rate 4M --output "$scratch/copy.$1" "$url$2" 2>>"$scratch/failures" || return 0
        cmp "$scratch/source" "$scratch/copy.$1" 2>>"$scratch/failures" || return 0
    done
}

check_exchange() {
    local id number name attempt workers=()
    head -c 3000000 /dev/urandom >"$scratch/source"
    : >"$scratch/failures"
    id=$(ask --fail --data-binary "@$scratch/source" "$url/files" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["remoteFileId"])')
    for number in 1 2 3 4; do
        upload_again &
        workers+=($!)
        download_again "$number" "/files/$id" &
        workers+=($!)
    done
    for number in 1 2 3 4 5; do
        for name in first second; do
            install_pair "$name"
            kill -HUP "$server_pid"
            for attempt in $(seq 1 100); do
                [[ $(serial) != "${serials[$name]}" ]] || break
                ((attempt < 100)) || fail "the $name certificate is not used"
                sleep 0.1
            done
            sleep 0.3
        done
    done
    touch "$scratch/stop"
    wait "${workers[@]}"
    [[ ! -s $scratch/failures ]] || fail "transfers failed: $(cat "$scratch/failures")"
    echo "tls: ten exchanges under four uploads and four downloads"
}

check_bad_pair() {
    cp "$scratch/first.key" "$scratch/live.key"
    kill -HUP "$server_pid"
    for _ in $(seq 1 100); do
        if grep -q 'certificate reload failed' "$scratch/server.log"; then break; fi
        sleep 0.1
    done
    grep -q 'certificate reload failed' "$scratch/server.log" || fail "a bad pair is not reported"
    [[ $(serial) == "${serials[second]}" ]] || fail "a bad pair replaced the good one"
    echo "tls: a bad pair keeps the one before"
}

check_end() {
    local start=$SECONDS
    # Its input never ends, so it holds the connection open after its handshake.
    mkfifo "$scratch/idle"
    exec 9<>"$scratch/idle"
    openssl s_client -connect "127.0.0.1:$port" <"$scratch/idle" >/dev/null 2>&1 9>&- &
    idle_pid=$!
    sleep 0.5
    kill -TERM "$server_pid"
    timeout 30 tail --pid="$server_pid" -f /dev/null || fail "the service does not end"
    wait "$server_pid" || fail "the service ended with a failure"
    server_pid=""
    ((SECONDS - start < 15)) || fail "an idle connection delayed the end"
    echo "tls: an idle connection does not delay the end"
}

declare -A serials=([first]=11111111 [second]=22222222)
make_authority
issue first "${serials[first]}"
issue second "${serials[second]}"
install_pair first
start_server
check_weak_versions
if command -v nmap >/dev/null; then check_with_nmap; fi
check_exchange
check_bad_pair
check_end
