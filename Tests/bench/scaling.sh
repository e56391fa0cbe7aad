#!/usr/bin/env bash
# Measures what rows cost in PostgreSQL: bytes of each table, time of each repeated query, and commits of
# chunks a second. docs/SCALING.md holds a result. It starts a server of its own, with syncs, and needs no
# kedge.
#
#   scaling.sh
#
# Environment: FILES (1000000), UPLOADS under way (100000), CHUNKS of each (10), SECONDS_EACH (20),
# CLIENTS ("1 8 32"), BENCH_DIR for the data (the system's temporary directory; about 5 GiB for the numbers
# above), PG_BIN (where Debian puts the newest).
set -euo pipefail

files=${FILES:-1000000}
uploads=${UPLOADS:-100000}
chunks=${CHUNKS:-10}
seconds=${SECONDS_EACH:-20}
clients=${CLIENTS:-1 8 32}
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/Tests/bench/scaling
programs=${PG_BIN:-$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)}
scratch=$(mktemp -d -p "${BENCH_DIR:-${TMPDIR:-/tmp}}" kedge-scaling.XXXXXX)

# The server refuses to run as root.
as_server_user=()
if [[ $(id -u) == 0 ]]; then
    chown postgres "$scratch"
    as_server_user=(setpriv --reuid=postgres --regid=postgres --init-groups)
fi

clean_up() {
    if [[ -f $scratch/data/postmaster.pid ]]; then
        "${as_server_user[@]}" "$programs/pg_ctl" stop --pgdata "$scratch/data" --mode immediate --silent
    fi
    rm -rf "$scratch"
}
trap clean_up EXIT

export PGHOST=$scratch PGUSER=kedge PGDATABASE=kedge PGOPTIONS="-c client_min_messages=warning"
sql() { "$programs/psql" --no-psqlrc --quiet --set ON_ERROR_STOP=1 "$@"; }
value() { sql --tuples-only --no-align --command "$1"; }

start_server() {
    "${as_server_user[@]}" "$programs/initdb" --pgdata "$scratch/data" --username kedge --auth trust \
        --encoding UTF8 --locale C >/dev/null
    # A quarter of a small server's memory, checkpoints as apart as on one that is written to; the rest is
    # as delivered. No TCP: all clients run on this machine.
    cat >>"$scratch/data/postgresql.conf" <<SETTINGS
listen_addresses = ''
unix_socket_directories = '$scratch'
shared_buffers = 2GB
max_wal_size = 8GB
checkpoint_timeout = 15min
SETTINGS
    "${as_server_user[@]}" "$programs/pg_ctl" start --wait --silent --pgdata "$scratch/data" \
        --log "$scratch/server.log"
    "$programs/createdb" kedge
}

# Prints the wait events of the backends during a run: the commonest of samples taken twice a second.
sample_waits() {
    while sleep 0.5; do
        value "SELECT coalesce(wait_event_type || ':' || wait_event, 'running') FROM pg_stat_activity
            WHERE application_name = 'pgbench' AND state = 'active'" >>"$scratch/waits"
    done
}

# measure NAME CLIENTS VARIABLE…: one line about a run.
measure() {
    local name=$1 count=$2 variables=() before after hot_before hot_after sampler
    shift 2
    for variable in "$@"; do variables+=(--define "$variable"); done
    : >"$scratch/waits"
    sql --command "CHECKPOINT"
    before=$(value "SELECT pg_current_wal_lsn()")
    hot_before=$(value "SELECT n_tup_upd || ' ' || n_tup_hot_upd FROM pg_stat_user_tables
        WHERE relname = 'session'")
    sample_waits &
    sampler=$!
    # Simple queries: nothing is prepared, as behind a pool that gives connections out by transaction.
    "$programs/pgbench" --no-vacuum --client "$count" --jobs 2 --time "$seconds" --protocol simple \
        --define first=$((files + 1)) --define last=$((files + uploads - 100)) \
        --define whole=0 --define notify=0 "${variables[@]}" \
        --file "$here/chunk.pgbench" >"$scratch/pgbench" 2>"$scratch/pgbench.errors" || {
        cat "$scratch/pgbench.errors" >&2
        exit 1
    }
    kill "$sampler" 2>/dev/null || true
    wait "$sampler" 2>/dev/null || true
    # Statistics reach the view a moment after the connections end.
    sleep 2
    after=$(value "SELECT pg_current_wal_lsn()")
    hot_after=$(value "SELECT n_tup_upd || ' ' || n_tup_hot_upd FROM pg_stat_user_tables
        WHERE relname = 'session'")
    awk -v name="$name" -v clients="$count" -v bytes="$(value "SELECT '$after'::pg_lsn - '$before'::pg_lsn")" \
        -v updates="$hot_before $hot_after" -v waits="$(sort "$scratch/waits" | uniq -c | sort -rn |
            head -n 3 | awk '{ printf "%s %s, ", $2, $1 }')" '
        /^latency average/ { latency = $4 }
        /^tps/ { rate = $3 }
        /^number of transactions actually processed/ { split($6, part, "/"); done = part[1] }
        END {
            split(updates, u, " ")
            hot = u[3] > u[1] ? 100 * (u[4] - u[2]) / (u[3] - u[1]) : 0
            sub(/, $/, "", waits)
            printf "%-26s %7d %10d %9.2f %9.1f %6d%%  %s\n", name, clients, rate, latency,
                bytes / done / 1024, hot, waits
        }' "$scratch/pgbench"
}

start_server
for migration in "$root"/migrations/postgres/*.sql; do
    sql --single-transaction --file "$migration"
done

echo "$(nproc) processors, $("$programs/postgres" --version)"
echo "$files files, $uploads uploads under way, $chunks chunks of each"
"${as_server_user[@]}" "$programs/pg_test_fsync" --secs-per-test 2 --filename "$scratch/data/sync" |
    awk '/^ +fdatasync +[0-9]/ && !seen++ { print "fdatasync of 8 KiB: " $2 " a second" }'
echo
sql --set files="$files" --set uploads="$uploads" --set chunks="$chunks" --file "$here/fill.sql"
sql --command "VACUUM (ANALYZE)"
sleep 2
echo "Sizes"
sql --pset footer=off --file "$here/sizes.sql"

echo "Queries, the second time they are asked"
sql --set files="$files" --set uploads="$uploads" --set chunks="$chunks" \
    --file "$here/queries.sql" >/dev/null
sql --tuples-only --no-align --set files="$files" --set uploads="$uploads" --set chunks="$chunks" \
    --file "$here/queries.sql" |
    awk '
        function show() { if (name != "") printf "%-55s %8s ms %7d pages  %s\n", name, time, pages, by }
        /^== / { show(); name = substr($0, 4); by = ""; pages = 0; time = "" }
        /Index.* Scan using|Bitmap Index Scan on|Seq Scan on/ {
            match($0, /(using|on) [a-z_]+/)
            node = substr($0, RSTART, RLENGTH); sub(/^(using|on) /, "", node)
            if ($0 ~ /Seq Scan/) node = "WHOLE " node
            by = by (by == "" ? "" : ", ") node
        }
        /shared hit/ && pages == 0 && match($0, /hit=[0-9]+/) { pages = substr($0, RSTART + 4, RLENGTH - 4) }
        /^Execution Time/ { time = $3 }
        END { show() }'

echo
echo "Commits of chunks, $seconds seconds each"
printf '%-26s %7s %10s %9s %9s %7s  %s\n' "" clients "a second" "ms" "log KiB" HOT "backends seen"
for count in $clients; do measure "commit" "$count"; done
for count in $clients; do measure "commit, with NOTIFY" "$count" notify=1; done
for count in $clients; do measure "all of a chunk" "$count" whole=1; done
# The index of the schema has no expires_at. This run shows what that saves.
sql --command "CREATE INDEX measured ON session (state, expires_at)"
for count in $clients; do measure "commit, expiry in an index" "$count"; done
