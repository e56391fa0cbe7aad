-- Sessions, their chunks, and the files they become. What the program promises about these rows is
-- also said here as constraints, so that a mistake in the program fails instead of being stored.
-- Times are milliseconds since 1970-01-01 UTC, sizes and offsets are bytes, digests are SHA-256.

CREATE TABLE session (
    -- Small key for the many rows that point here; the id is the public name.
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE CHECK (length(id) = 32 AND id NOT GLOB '*[^0-9a-f]*'),
    owner TEXT NOT NULL CHECK (owner <> ''),
    -- Names the bytes on their way in. NULL once they are a blob, rubbish, or another session's.
    staging_key TEXT UNIQUE
        CHECK (length(staging_key) = 32 AND staging_key NOT GLOB '*[^0-9a-f]*'),
    file_name TEXT NOT NULL,
    mime_type TEXT,
    file_size INTEGER CHECK (file_size >= 0),
    chunk_size INTEGER NOT NULL CHECK (chunk_size > 0),
    declared_sha256 BLOB CHECK (length(declared_sha256) = 32),
    -- A JSON object with text values.
    metadata TEXT NOT NULL CHECK (metadata GLOB '{*}'),
    state TEXT NOT NULL CHECK (
        state IN ('open', 'finalizing', 'completed', 'failed', 'canceled', 'expired')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- The whole-file hash over the contiguous prefix.
    prefix_offset INTEGER CHECK (prefix_offset >= 0),
    prefix_state BLOB CHECK (length(prefix_state) > 0),
    -- What the session becomes.
    file_id TEXT UNIQUE CHECK (length(file_id) = 32 AND file_id NOT GLOB '*[^0-9a-f]*'),
    final_sha256 BLOB CHECK (length(final_sha256) = 32),

    -- Parent of the rows that carry the chunk size, so that their sizes are checked against it.
    UNIQUE (number, chunk_size),
    CHECK (prefix_offset <= file_size),
    CHECK ((prefix_offset IS NULL) = (prefix_state IS NULL)),
    CHECK ((file_id IS NULL) = (final_sha256 IS NULL)),
    CHECK ((file_id IS NOT NULL) = (state IN ('finalizing', 'completed'))),
    CHECK (file_size IS NOT NULL OR state NOT IN ('finalizing', 'completed')),
    CHECK (staging_key IS NOT NULL OR state NOT IN ('open', 'finalizing')),
    CHECK (staging_key IS NULL OR state NOT IN ('completed', 'canceled'))
) STRICT;

-- For the sweep of sessions whose time is over.
CREATE INDEX session_by_expiry ON session (state, expires_at);
-- Answers whether a session that is about to become a file needs a blob.
CREATE INDEX session_by_final_digest ON session (final_sha256) WHERE state = 'finalizing';

-- Which session a repeated create means.
CREATE TABLE idempotency_key (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    -- Of the request, so that the key cannot be used for another one.
    fingerprint TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_key_by_session ON idempotency_key (session);

-- Chunks whose bytes are durable and verified. After completion they are the file's chunk list.
CREATE TABLE chunk (
    session INTEGER NOT NULL,
    idx INTEGER NOT NULL CHECK (idx >= 0 AND idx < 1048576),
    byte_count INTEGER NOT NULL CHECK (byte_count > 0),
    chunk_size INTEGER NOT NULL,
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    PRIMARY KEY (session, idx),
    FOREIGN KEY (session, chunk_size) REFERENCES session (number, chunk_size) ON DELETE CASCADE,
    CHECK (byte_count <= chunk_size)
) STRICT, WITHOUT ROWID;

-- Durable first bytes of chunks that are not complete yet.
CREATE TABLE partial_chunk (
    session INTEGER NOT NULL,
    idx INTEGER NOT NULL CHECK (idx >= 0 AND idx < 1048576),
    byte_count INTEGER NOT NULL CHECK (byte_count > 0),
    chunk_size INTEGER NOT NULL,
    -- Saved state of the hash that has seen exactly these bytes.
    hash_state BLOB NOT NULL CHECK (length(hash_state) > 0),
    -- What the sender announced for the whole chunk.
    declared_sha256 BLOB CHECK (length(declared_sha256) = 32),
    PRIMARY KEY (session, idx),
    FOREIGN KEY (session, chunk_size) REFERENCES session (number, chunk_size) ON DELETE CASCADE,
    CHECK (byte_count < chunk_size)
) STRICT, WITHOUT ROWID;

-- Finished files. A deleted one stays, so that its id answers as gone and is never used again.
CREATE TABLE file (
    id TEXT PRIMARY KEY CHECK (length(id) = 32 AND id NOT GLOB '*[^0-9a-f]*'),
    owner TEXT NOT NULL CHECK (owner <> ''),
    session_id TEXT NOT NULL UNIQUE
        CHECK (length(session_id) = 32 AND session_id NOT GLOB '*[^0-9a-f]*'),
    -- Holds the chunk list. It may go only after the file.
    session INTEGER UNIQUE REFERENCES session (number) ON DELETE SET NULL,
    file_name TEXT NOT NULL,
    mime_type TEXT,
    byte_count INTEGER NOT NULL CHECK (byte_count >= 0),
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    chunk_size INTEGER NOT NULL CHECK (chunk_size > 0),
    created_at INTEGER NOT NULL,
    deleted_at INTEGER,
    CHECK (session IS NOT NULL OR deleted_at IS NOT NULL)
) STRICT, WITHOUT ROWID;

CREATE INDEX file_newest_first ON file (owner, created_at DESC, id DESC)
    WHERE deleted_at IS NULL;
CREATE INDEX file_by_digest ON file (sha256) WHERE deleted_at IS NULL;
CREATE INDEX file_with_orphaned_session ON file (session)
    WHERE deleted_at IS NOT NULL AND session IS NOT NULL;

-- Bytes that no row above needs and that a sweep removes: the row here goes after the bytes.
CREATE TABLE garbage (
    kind TEXT NOT NULL CHECK (kind IN ('staging', 'blob')),
    -- A staging key, or the digest of a blob in hexadecimal.
    key TEXT NOT NULL CHECK (key NOT GLOB '*[^0-9a-f]*'),
    -- Until then one node alone removes it; 0 before anybody tries.
    lease_until INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, key),
    CHECK (length(key) = CASE kind WHEN 'staging' THEN 32 ELSE 64 END)
) STRICT, WITHOUT ROWID;

CREATE INDEX garbage_by_lease ON garbage (lease_until);
