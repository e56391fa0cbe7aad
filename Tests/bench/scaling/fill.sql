-- Fills the tables as a service would that has been at work for a while: finished files with their chunk
-- lists, uploads under way, and a little of everything that the sweep looks for.
--
-- Variables: files, chunks (of each file and received of each upload), uploads.

-- Foreign keys are not checked while filling, or it would take hours; the rows are right by construction.
SET session_replication_role = replica;
SET synchronous_commit = off;
SET maintenance_work_mem = '512MB';

-- Names of rows are digests of their number, so that they lie as randomly in the indexes as real ones.
-- Numbers 1 to :files are files, those after them uploads. One file in a hundred is deleted, and one
-- upload in a hundred is over its time; a hundred are at their finalize.
INSERT INTO session (
    id, owner, staging_key, staging_state, file_name, mime_type, file_size, chunk_size, metadata, state,
    created_at, expires_at, file_id, final_sha256, revision)
SELECT
    md5('session' || n), 'owner' || n % 100, NULL, NULL, 'recording-' || n || '.mp4', 'video/mp4',
    :chunks * 8388608::bigint, 8388608, '{}', 'completed', 1600000000000 + n, 1600604800000 + n,
    md5('file' || n), sha256(int8send(n)), :chunks + 3
FROM generate_series(1::bigint, :files) AS n;

INSERT INTO session (
    id, owner, staging_key, staging_state, file_name, mime_type, file_size, chunk_size, metadata, state,
    created_at, expires_at, file_id, final_sha256, prefix_offset, prefix_state, revision)
SELECT
    md5('session' || n), 'owner' || n % 100, md5('staging' || n),
    'upload:' || encode(sha256(int8send(-n)), 'base64'), 'recording-' || n || '.mp4', 'video/mp4',
    10000 * 8388608::bigint, 8388608, '{}',
    CASE WHEN n > :files + :uploads - 100 THEN 'finalizing' ELSE 'open' END,
    1600000000000 + n,
    CASE n % 100 WHEN 0 THEN 1600000000000 + n ELSE (extract(epoch FROM now()) * 1000)::bigint + 604800000 END,
    CASE WHEN n > :files + :uploads - 100 THEN md5('file' || n) END,
    CASE WHEN n > :files + :uploads - 100 THEN sha256(int8send(n)) END,
    :chunks * 8388608::bigint, sha256(int8send(n)) || '\x001122334455667788', :chunks
FROM generate_series(:files + 1::bigint, :files + :uploads) AS n;

INSERT INTO idempotency_key (owner, key, fingerprint, session)
SELECT owner, md5('key' || number), encode(sha256(int8send(number)), 'hex'), number FROM session;

INSERT INTO chunk (session, idx, byte_count, chunk_size, sha256, location, revision)
SELECT
    n, i, 8388608, 8388608, sha256(int8send(n * 1000 + i)), 'part:"' || md5((n * 1000 + i)::text) || '"',
    i + 1
FROM generate_series(1::bigint, :files + :uploads) AS n, generate_series(0, :chunks - 1) AS i;

INSERT INTO file (
    id, owner, session_id, session, file_name, mime_type, byte_count, sha256, chunk_size, created_at,
    deleted_at)
SELECT
    file_id, owner, id, number, file_name, mime_type, file_size, final_sha256, chunk_size, created_at,
    CASE number % 100 WHEN 0 THEN created_at END
FROM session WHERE state = 'completed';

INSERT INTO blob (sha256, byte_count, staging_key, location)
SELECT sha256, byte_count, md5('staging' || session), 'objects/' || md5('staging' || session)
FROM file WHERE deleted_at IS NULL;

INSERT INTO garbage (kind, key, state)
SELECT 'staging', md5('staging' || session), 'object:objects/' || md5('staging' || session)
FROM file WHERE deleted_at IS NOT NULL;

INSERT INTO finalize_job (session, holder, lease_until)
SELECT number, md5('node'), 1600000000000 FROM session WHERE state = 'finalizing';

-- One body under way for each upload.
INSERT INTO writer_lease (session_id, idx, token, lease_until, wanted)
SELECT id, :chunks, md5('writer' || number), (extract(epoch FROM now()) * 1000)::bigint + 86400000, FALSE
FROM session WHERE state = 'open';
