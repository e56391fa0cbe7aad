-- Uploads to servers that speak tus or IETF resumable uploads: each has an address instead of a session,
-- and may be finished without an id or digest from the server. SQLite cannot change a CHECK, so the table
-- is made anew.

ALTER TABLE upload_transfer RENAME TO upload_transfer_before;

CREATE TABLE upload_transfer (
    transfer_id TEXT NOT NULL PRIMARY KEY
        CHECK (length(transfer_id) = 32 AND transfer_id NOT GLOB '*[^0-9a-f]*'),
    -- Base URL of a Kedge server; for the other dialects the URL at which uploads are created.
    server_url TEXT NOT NULL CHECK (server_url <> ''),
    dialect TEXT NOT NULL DEFAULT 'native'
        CHECK (dialect IN ('native', 'tus', 'resumable-upload')),
    upload_url TEXT CHECK (upload_url <> ''),
    -- Version of the draft in which the upload was begun; none for the form without a version.
    interop_version INTEGER CHECK (interop_version > 0),
    path TEXT NOT NULL CHECK (path <> ''),
    file_name TEXT NOT NULL CHECK (file_name <> ''),
    file_size INTEGER NOT NULL CHECK (file_size >= 0),
    modified_nanoseconds INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    mime_type TEXT,
    chunk_size INTEGER NOT NULL CHECK (chunk_size > 0),
    total_chunks INTEGER GENERATED ALWAYS AS
        (file_size / chunk_size + (file_size % chunk_size > 0)) VIRTUAL,
    max_concurrent_chunks INTEGER CHECK (max_concurrent_chunks > 0),
    uploaded_chunks BLOB NOT NULL DEFAULT x'',
    session_id TEXT CHECK (length(session_id) = 32),
    adopt_session_id TEXT CHECK (length(adopt_session_id) = 32),
    idempotency_key TEXT NOT NULL CHECK (idempotency_key <> ''),
    expires_at INTEGER,
    remote_file_id TEXT CHECK (length(remote_file_id) = 32),
    file_hash_sha256 BLOB CHECK (length(file_hash_sha256) = 32),
    hash_state BLOB,
    hash_offset INTEGER NOT NULL DEFAULT 0 CHECK (hash_offset BETWEEN 0 AND file_size),
    replaces TEXT,
    replaced_by TEXT,
    -- The columns below are the same in both tables.
    state TEXT NOT NULL
        CHECK (state IN ('queued', 'uploading', 'paused', 'failed', 'completed', 'canceled')),
    pause_reason TEXT CHECK (pause_reason IN ('user', 'shutdown', 'constraint')),
    control TEXT NOT NULL DEFAULT 'none'
        CHECK (control IN ('none', 'pause', 'cancel', 'retry', 'restart')),
    last_error_code TEXT,
    last_error_message TEXT,
    last_server_status INTEGER,
    last_request_id TEXT,
    last_good_byte_offset INTEGER NOT NULL DEFAULT 0 CHECK (last_good_byte_offset >= 0),
    integrity_failure_count INTEGER NOT NULL DEFAULT 0 CHECK (integrity_failure_count >= 0),
    verification TEXT CHECK (verification IN ('sha256', 'unverified')),
    owner_token TEXT,
    owner_process INTEGER,
    owner_heartbeat INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL CHECK (updated_at >= created_at),
    CHECK ((state = 'paused') = (pause_reason IS NOT NULL)),
    CHECK (state <> 'failed' OR last_error_code IS NOT NULL),
    CHECK (state <> 'completed' OR (file_hash_sha256 IS NOT NULL AND verification IS NOT NULL)),
    CHECK (state <> 'completed' OR remote_file_id IS NOT NULL OR dialect <> 'native'),
    CHECK (session_id IS NULL OR dialect = 'native'),
    CHECK (upload_url IS NULL OR dialect <> 'native'),
    CHECK (interop_version IS NULL OR (dialect = 'resumable-upload' AND upload_url IS NOT NULL)),
    CHECK (session_id IS NOT NULL OR upload_url IS NOT NULL OR length(uploaded_chunks) = 0),
    CHECK ((hash_state IS NULL) = (hash_offset = 0)),
    CHECK ((owner_token IS NULL) = (owner_process IS NULL)
        AND (owner_token IS NULL) = (owner_heartbeat IS NULL))
) STRICT;

-- In the order in which they were made: the newest of two that were made at the same time is found by it.
INSERT INTO upload_transfer (transfer_id, server_url, path, file_name, file_size, modified_nanoseconds,
    inode, mime_type, chunk_size, max_concurrent_chunks, uploaded_chunks, session_id, adopt_session_id,
    idempotency_key, expires_at, remote_file_id, file_hash_sha256, hash_state, hash_offset, replaces,
    replaced_by, state, pause_reason, control, last_error_code, last_error_message, last_server_status,
    last_request_id, last_good_byte_offset, integrity_failure_count, verification, owner_token,
    owner_process, owner_heartbeat, created_at, updated_at)
SELECT transfer_id, server_url, path, file_name, file_size, modified_nanoseconds,
    inode, mime_type, chunk_size, max_concurrent_chunks, uploaded_chunks, session_id, adopt_session_id,
    idempotency_key, expires_at, remote_file_id, file_hash_sha256, hash_state, hash_offset, replaces,
    replaced_by, state, pause_reason, control, last_error_code, last_error_message, last_server_status,
    last_request_id, last_good_byte_offset, integrity_failure_count, verification, owner_token,
    owner_process, owner_heartbeat, created_at, updated_at
FROM upload_transfer_before ORDER BY rowid;

DROP TABLE upload_transfer_before;

-- The same command again finds the transfer it began before.
CREATE UNIQUE INDEX upload_transfer_unfinished ON upload_transfer (server_url, path, dialect)
    WHERE state NOT IN ('completed', 'canceled');
