-- The transfers of one user on one machine. File bytes are never in here (R23).
-- Times are milliseconds since 1970 unless the name says nanoseconds; sizes and offsets are bytes.

CREATE TABLE upload_transfer (
    transfer_id TEXT NOT NULL PRIMARY KEY
        CHECK (length(transfer_id) = 32 AND transfer_id NOT GLOB '*[^0-9a-f]*'),
    server_url TEXT NOT NULL CHECK (server_url <> ''),
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
    CHECK (state <> 'completed' OR (remote_file_id IS NOT NULL
        AND file_hash_sha256 IS NOT NULL AND verification IS NOT NULL)),
    CHECK (session_id IS NOT NULL OR length(uploaded_chunks) = 0),
    CHECK ((hash_state IS NULL) = (hash_offset = 0)),
    CHECK ((owner_token IS NULL) = (owner_process IS NULL)
        AND (owner_token IS NULL) = (owner_heartbeat IS NULL))
) STRICT;

-- The same command again finds the transfer it began before.
CREATE UNIQUE INDEX upload_transfer_unfinished ON upload_transfer (server_url, path)
    WHERE state NOT IN ('completed', 'canceled');

CREATE TABLE download_transfer (
    transfer_id TEXT NOT NULL PRIMARY KEY
        CHECK (length(transfer_id) = 32 AND transfer_id NOT GLOB '*[^0-9a-f]*'),
    server_url TEXT NOT NULL CHECK (server_url <> ''),
    remote_file_id TEXT CHECK (length(remote_file_id) = 32),
    remote_url TEXT CHECK (remote_url <> ''),
    destination_path TEXT NOT NULL CHECK (destination_path <> ''),
    temp_path TEXT NOT NULL CHECK (temp_path <> '' AND temp_path <> destination_path),
    overwrites INTEGER NOT NULL CHECK (overwrites IN (0, 1)),
    expected_size INTEGER CHECK (expected_size >= 0),
    expected_hash BLOB CHECK (length(expected_hash) = 32),
    is_hash_pinned INTEGER NOT NULL CHECK (is_hash_pinned IN (0, 1)),
    etag TEXT,
    chunk_size INTEGER NOT NULL CHECK (chunk_size > 0),
    downloaded_chunks BLOB NOT NULL DEFAULT x'',
    temp_inode INTEGER,
    file_hash_sha256 BLOB CHECK (length(file_hash_sha256) = 32),
    remote_change_count INTEGER NOT NULL DEFAULT 0 CHECK (remote_change_count >= 0),
    -- The columns below are the same in both tables.
    state TEXT NOT NULL
        CHECK (state IN ('queued', 'downloading', 'paused', 'failed', 'completed', 'canceled')),
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
    CHECK ((remote_file_id IS NULL) <> (remote_url IS NULL)),
    CHECK ((state = 'paused') = (pause_reason IS NOT NULL)),
    CHECK (state <> 'failed' OR last_error_code IS NOT NULL),
    CHECK (state <> 'completed' OR (file_hash_sha256 IS NOT NULL AND verification IS NOT NULL)),
    CHECK (verification IS NOT 'sha256' OR expected_hash = file_hash_sha256),
    CHECK (is_hash_pinned = 0 OR expected_hash IS NOT NULL),
    CHECK (length(downloaded_chunks) = 0
        OR (expected_size IS NOT NULL AND etag IS NOT NULL AND temp_inode IS NOT NULL)),
    CHECK ((owner_token IS NULL) = (owner_process IS NULL)
        AND (owner_token IS NULL) = (owner_heartbeat IS NULL))
) STRICT;

-- Two unfinished downloads never share a destination and so never promote over each other.
CREATE UNIQUE INDEX download_transfer_unfinished ON download_transfer (destination_path)
    WHERE state NOT IN ('completed', 'canceled');

-- How often each chunk was tried; rows appear with the first failure or with the confirmation (R139).
CREATE TABLE transfer_chunk_attempt (
    transfer_id TEXT NOT NULL,
    chunk_index INTEGER NOT NULL CHECK (chunk_index >= 0),
    attempts INTEGER NOT NULL CHECK (attempts > 0),
    PRIMARY KEY (transfer_id, chunk_index)
) STRICT, WITHOUT ROWID;
