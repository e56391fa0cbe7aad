#!/usr/bin/env bash
# Measures what the chunk size costs: time of an upload and a download, requests, and bytes that the
# server keeps beside the file (R10). What a larger chunk costs after damage is one chunk sent again,
# which is its size and needs no clock.
#
#   chunk_sizes.sh PATH_TO_KEDGE
#
# Environment: SIZE in bytes (1 GiB), BENCH_DIR for the data (the system's temporary directory; about
# three times SIZE is needed there). Prints a table.
set -euo pipefail

binary=$(realpath "${1:?usage: chunk_sizes.sh PATH_TO_KEDGE}")
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/Tests/support/server.sh"

size=${SIZE:-$((1 << 30))}
scratch=$(mktemp -d -p "${BENCH_DIR:-${TMPDIR:-/tmp}}" kedge-bench.XXXXXX)
source "$root/Tests/bench/measuring.sh"

clean_up() {
    [[ -z $client_pid ]] || kill -KILL "$client_pid" 2>/dev/null || true
    stop_server || true
    rm -rf "$scratch"
}
trap clean_up EXIT

make_random_file "$scratch/source" "$size"
echo "$(calc "$size / 1048576" 0) MiB, $(nproc) processors"
echo "  chunk MiB    chunks   upload MiB/s   download MiB/s   database KiB   server MiB   uploader MiB"
for chunk in $((256 << 10)) $((1 << 20)) $((4 << 20)) $((16 << 20)) $((64 << 20)); do
    # A database and records of its own for each size.
    rm -rf "$scratch/data" "$scratch/state"
    start_server "$binary" "$scratch"
    client upload "$scratch/source" --chunk-size "$chunk"
    upload_seconds=$elapsed upload_peak=$client_peak
    client download "$(member remoteFileId <<<"$answer")" --output "$scratch/copy"
    download_seconds=$elapsed
    cmp "$scratch/source" "$scratch/copy"
    server_peak=$(peak "$server_pid")
    stop_server
    database_kib=$(calc "$(cat "$scratch"/data/*.sqlite* | wc -c) / 1024" 0)
    printf '%11s %9d %14s %16s %14s %12s %14s\n' "$(calc "$chunk / 1048576" 2)" \
        "$(((size + chunk - 1) / chunk))" "$(calc "$size / 1048576 / $upload_seconds")" \
        "$(calc "$size / 1048576 / $download_seconds")" "$database_kib" \
        "$(calc "$server_peak / 1024")" "$(calc "$upload_peak / 1024")"
    rm "$scratch/copy"
done
