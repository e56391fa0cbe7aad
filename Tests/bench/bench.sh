#!/usr/bin/env bash
# Measures Kedge on this machine: throughput and memory of a large upload and download, and the time of
# finalize for a small and a large file, beside nginx taking and giving the same bytes.
#
#   bench.sh PATH_TO_KEDGE
#
# Environment: SIZE in bytes (5 GiB), BENCH_DIR for the data (the system's temporary directory; about
# three times SIZE is needed there). Prints a table; ends with status 1 when a promise on memory or
# finalize is not kept.
set -euo pipefail

binary=$(realpath "${1:?usage: bench.sh PATH_TO_KEDGE}")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/Tests/support/server.sh"
source "$root/Tests/bench/measuring.sh"
PATH="$PATH:/usr/sbin:/sbin"

size=${SIZE:-$((5 << 30))}
small_size=$((50 << 20))
finalize_chunk=$((64 << 20))
# Promises: memory of each process, and finalize of a large file, whatever its size.
max_resident_kib=$((64 << 10))
max_finalize_ms=100

scratch=$(mktemp -d -p "${BENCH_DIR:-${TMPDIR:-/tmp}}" kedge-bench.XXXXXX)
nginx_pid=""

clean_up() {
    [[ -z $client_pid ]] || kill -KILL "$client_pid" 2>/dev/null || true
    [[ -z $nginx_pid ]] || kill -TERM "$nginx_pid" 2>/dev/null || true
    stop_server || true
    rm -rf "$scratch"
}
trap clean_up EXIT

needed=$((3 * size + (1 << 30)))
available=$(($(df --output=avail --block-size=1 "$scratch" | tail -n 1)))
if ((available < needed)); then
    echo "bench: $needed bytes are needed in ${BENCH_DIR:-${TMPDIR:-/tmp}}, $available are free" >&2
    exit 1
fi

ask() { curl --silent --show-error --fail-with-body --max-time 600 "$@"; }

# time_finalize FILE: uploads it with curl in large chunks; sets finalize_ms to the time from asking
# for finalize, right after the last chunk was acknowledged, to its answer. Deletes it again.
time_finalize() {
    local file=$1 total session index count first length hash reply
    total=$(stat --format=%s "$file")
    reply=$(ask "$server_url/uploads/sessions" --header 'Content-Type: application/json' \
        --data "{\"fileName\":\"bench\",\"fileSize\":$total,\"chunkSize\":$finalize_chunk}")
    session=$(member sessionId <<<"$reply")
    count=$(((total + finalize_chunk - 1) / finalize_chunk))
    for ((index = 0; index < count; index++)); do
        dd if="$file" of="$scratch/chunk" bs="$finalize_chunk" skip="$index" count=1 status=none
        first=$((index * finalize_chunk))
        length=$(stat --format=%s "$scratch/chunk")
        hash=$(sha256sum <"$scratch/chunk" | cut -d ' ' -f 1)
        ask --output /dev/null --upload-file "$scratch/chunk" \
            --header "Content-Range: bytes $first-$((first + length - 1))/$total" \
            --header "X-Chunk-Hash: sha256=$hash" \
            "$server_url/uploads/sessions/$session/chunks/$index"
    done
    reply=$(ask --request POST --write-out '\n%{time_total}' \
        "$server_url/uploads/sessions/$session/finalize")
    finalize_ms=$(calc "1000 * $(tail -n 1 <<<"$reply")")
    ask --request DELETE "$server_url/files/$(head -n 1 <<<"$reply" | member remoteFileId)"
    rm "$scratch/chunk"
}

start_nginx() {
    nginx_port=$(free_port)
    mkdir -p "$scratch/nginx/files"
    cat >"$scratch/nginx/nginx.conf" <<CONF
worker_processes auto;
daemon off;
pid $scratch/nginx/nginx.pid;
$([[ $(id -u) != 0 ]] || echo "user root;")
events {}
http {
    access_log off;
    sendfile on;
    client_body_temp_path $scratch/nginx/body;
    proxy_temp_path $scratch/nginx/proxy;
    fastcgi_temp_path $scratch/nginx/fastcgi;
    uwsgi_temp_path $scratch/nginx/uwsgi;
    scgi_temp_path $scratch/nginx/scgi;
    server {
        listen 127.0.0.1:$nginx_port;
        root $scratch/nginx/files;
        client_max_body_size 0;
        location / { dav_methods PUT; }
    }
}
CONF
    nginx -c "$scratch/nginx/nginx.conf" -e "$scratch/nginx/error.log" &
    nginx_pid=$!
    # Any answer will do; a refused connection is tried again until nginx listens.
    curl --silent --output /dev/null --retry 50 --retry-delay 0 --retry-connrefused \
        --retry-max-time 10 "http://127.0.0.1:$nginx_port/"
}

stop_nginx() {
    kill -TERM "$nginx_pid"
    wait "$nginx_pid" || true
    nginx_pid=""
}

rate() { calc "$size / 1048576 / $1"; }
mib() { calc "$1 / 1024"; }

echo "bench: $(calc "$size / 1073741824" 2) GiB, $(nproc) processors" >&2
make_random_file "$scratch/source" "$size"
make_random_file "$scratch/small" "$small_size"

echo "bench: finalize" >&2
start_server "$binary" "$scratch"
time_finalize "$scratch/small"
small_ms=$finalize_ms
time_finalize "$scratch/source"
large_ms=$finalize_ms
stop_server
rm -r "$scratch/data" "$scratch/small"

echo "bench: kedge upload and download" >&2
start_server "$binary" "$scratch"
client upload "$scratch/source"
upload_seconds=$elapsed upload_peak=$client_peak
file_id=$(member remoteFileId <<<"$answer")
client download "$file_id" --output "$scratch/copy"
download_seconds=$elapsed download_peak=$client_peak
cmp "$scratch/source" "$scratch/copy"
server_peak=$(peak "$server_pid")
stop_server
rm -r "$scratch/data" "$scratch/copy"

echo "bench: nginx PUT and GET" >&2
start_nginx
timed ask --output /dev/null --upload-file "$scratch/source" "http://127.0.0.1:$nginx_port/file"
put_seconds=$elapsed
# Kedge's acknowledgement means durable and verified; nginx's does not. This makes it comparable.
timed sync "$scratch/nginx/files/file"
put_synced_seconds=$(calc "$put_seconds + $elapsed" 3)
timed ask --output "$scratch/copy" "http://127.0.0.1:$nginx_port/file"
get_seconds=$elapsed
stop_nginx

cat <<TABLE
                              MiB/s     seconds
kedge upload             $(printf '%10s %11s' "$(rate "$upload_seconds")" "$upload_seconds")
kedge download           $(printf '%10s %11s' "$(rate "$download_seconds")" "$download_seconds")
nginx PUT                $(printf '%10s %11s' "$(rate "$put_seconds")" "$put_seconds")
nginx PUT and fsync      $(printf '%10s %11s' "$(rate "$put_synced_seconds")" "$put_synced_seconds")
nginx GET                $(printf '%10s %11s' "$(rate "$get_seconds")" "$get_seconds")

upload / nginx PUT              $(calc "$put_seconds / $upload_seconds" 2)
upload / nginx PUT and fsync    $(calc "$put_synced_seconds / $upload_seconds" 2)
download / nginx GET            $(calc "$get_seconds / $download_seconds" 2)

peak memory of the server       $(mib "$server_peak") MiB
peak memory of the uploader     $(mib "$upload_peak") MiB
peak memory of the downloader   $(mib "$download_peak") MiB
finalize of 50 MiB              $small_ms ms
finalize of $(calc "$size / 1073741824" 2) GiB            $large_ms ms
TABLE

failed=0
for measured in "server $server_peak" "uploader $upload_peak" "downloader $download_peak"; do
    read -r who kib <<<"$measured"
    if ((kib > max_resident_kib)); then
        echo "bench: the $who took more than $(mib "$max_resident_kib") MiB" >&2
        failed=1
    fi
done
if [[ $(calc "$large_ms > $max_finalize_ms" 0) == 1 ]]; then
    echo "bench: finalize took more than $max_finalize_ms ms" >&2
    failed=1
fi
exit "$failed"
