-- The plans of what is asked again and again, without changing anything.
-- Variables: files, uploads, chunks.
BEGIN;
\echo == status of an upload: its row
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT * FROM session WHERE id = md5('session' || (:files + 7)) AND owner = 'owner' || (:files + 7) % 100;
\echo == status of an upload: its chunks
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT idx, byte_count, sha256, location FROM chunk WHERE session = :files + 7 ORDER BY idx;
\echo == what came to an upload since a revision
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT idx, byte_count, sha256, location FROM chunk WHERE session = :files + 7 AND revision > :chunks - 2;
\echo == a file
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT * FROM file LEFT JOIN blob USING (sha256) WHERE file.id = md5('file' || :files / 2);
\echo == first page of 100 files of an owner
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT * FROM file WHERE owner = 'owner7' AND deleted_at IS NULL
ORDER BY created_at DESC, id DESC LIMIT 100;
\echo == a page of 100 files far down
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT * FROM file WHERE owner = 'owner7' AND deleted_at IS NULL
    AND (created_at, id) < (1600000000000 + :files / 2, 'ffffffffffffffffffffffffffffffff')
ORDER BY created_at DESC, id DESC LIMIT 100;
\echo == sweep: open sessions over their time
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT * FROM session WHERE state = 'open'
    AND expires_hour <= 1600300000000 / 3600000 AND expires_at <= 1600300000000
ORDER BY expires_hour LIMIT 100 FOR UPDATE SKIP LOCKED;
\echo == sweep: sessions to forget
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT * FROM session WHERE state IN ('expired', 'canceled')
    AND expires_hour <= 1600700000000 / 3600000 AND expires_at < 1600700000000
ORDER BY expires_hour LIMIT 100 FOR UPDATE SKIP LOCKED;
\echo == sweep: sessions of deleted files
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT session.* FROM file JOIN session ON session.number = file.session
WHERE file.deleted_at IS NOT NULL AND file.session IS NOT NULL AND session.expires_at < 1700000000000
LIMIT 100 FOR UPDATE OF session SKIP LOCKED;
\echo == sweep: sessions of deleted files, none due
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT session.* FROM file JOIN session ON session.number = file.session
WHERE file.deleted_at IS NOT NULL AND file.session IS NOT NULL AND session.expires_at < 1500000000000
LIMIT 100 FOR UPDATE OF session SKIP LOCKED;
\echo == sweep: garbage to take, in order of the index
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT kind, key, state FROM garbage WHERE lease_until <= 1600000000000
ORDER BY lease_until LIMIT 100 FOR UPDATE SKIP LOCKED;
\echo == sweep: garbage to take, in order of kind and key, too
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT kind, key, state FROM garbage WHERE lease_until <= 1600000000000
ORDER BY lease_until, kind, key LIMIT 100 FOR UPDATE SKIP LOCKED;
\echo == sweep: finalizes whose node is gone
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT session FROM finalize_job WHERE lease_until <= 1600000000001
ORDER BY lease_until LIMIT 10 FOR UPDATE SKIP LOCKED;
\echo == sweep: finalizing sessions that nobody promised
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT number FROM session WHERE state = 'finalizing'
    AND NOT EXISTS (SELECT FROM finalize_job WHERE finalize_job.session = session.number) LIMIT 10;
\echo == sweep: leases of writers that are gone
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
DELETE FROM writer_lease WHERE lease_until < 1600000000000
    OR NOT EXISTS (SELECT 1 FROM session WHERE session.id = session_id AND state = 'open');
\echo == is a blob needed
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
SELECT 1 FROM file WHERE sha256 = sha256(int8send(7)) AND deleted_at IS NULL
UNION ALL SELECT 1 FROM session WHERE final_sha256 = sha256(int8send(7)) AND state = 'finalizing' LIMIT 1;
\echo == sweep: forgetting one session with its chunks
EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF)
DELETE FROM session WHERE number = :files + 8;
ROLLBACK;
