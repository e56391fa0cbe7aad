-- Sessions, their chunks, and the files they become. What the program promises about these rows is
-- also said here as constraints, so that a mistake in the program fails instead of being stored.
-- Times are milliseconds since 1970-01-01 UTC, sizes and offsets are bytes, digests are SHA-256.
-- Identifiers are compared as bytes (COLLATE "C"), whatever the language of the database.

CREATE TABLE session (
    -- Small key for the many rows that point here; the id is the public name.
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE CHECK (id ~ '^[0-9a-f]{32}$'),
    owner TEXT COLLATE "C" NOT NULL CHECK (owner <> ''),
    -- Names the bytes on their way in. NULL once they are a blob, rubbish, or another session's.
    staging_key TEXT COLLATE "C" UNIQUE CHECK (staging_key ~ '^[0-9a-f]{32}$'),
    file_name TEXT NOT NULL,
    mime_type TEXT,
    file_size BIGINT CHECK (file_size >= 0),
    chunk_size BIGINT NOT NULL CHECK (chunk_size > 0),
    declared_sha256 BYTEA CHECK (octet_length(declared_sha256) = 32),
    -- A JSON object with text values.
    metadata TEXT NOT NULL CHECK (metadata LIKE '{%}'),
    state TEXT NOT NULL CHECK (
        state IN ('open', 'finalizing', 'completed', 'failed', 'canceled', 'expired')),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- What the index below has instead of expires_at. That moves with every chunk, and a row whose
    -- indexed columns stay as they are is updated in place, without an entry in any index.
    expires_hour BIGINT NOT NULL GENERATED ALWAYS AS (expires_at / 3600000) STORED,
    -- The whole-file hash over the contiguous prefix.
    prefix_offset BIGINT CHECK (prefix_offset >= 0),
    prefix_state BYTEA CHECK (octet_length(prefix_state) > 0),
    -- What the session becomes.
    file_id TEXT COLLATE "C" UNIQUE CHECK (file_id ~ '^[0-9a-f]{32}$'),
    final_sha256 BYTEA CHECK (octet_length(final_sha256) = 32),

    -- Parent of the rows that carry the chunk size, so that their sizes are checked against it.
    UNIQUE (number, chunk_size),
    CHECK (prefix_offset <= file_size),
    CHECK ((prefix_offset IS NULL) = (prefix_state IS NULL)),
    CHECK ((file_id IS NULL) = (final_sha256 IS NULL)),
    CHECK ((file_id IS NOT NULL) = (state IN ('finalizing', 'completed'))),
    CHECK (file_size IS NOT NULL OR state NOT IN ('finalizing', 'completed')),
    CHECK (staging_key IS NOT NULL OR state NOT IN ('open', 'finalizing')),
    CHECK (staging_key IS NULL OR state NOT IN ('completed', 'canceled'))
) WITH (fillfactor = 80);

-- For the sweep of sessions whose time is over.
CREATE INDEX session_by_expiry ON session (state, expires_hour);
-- Answers whether a session that is about to become a file needs a blob.
CREATE INDEX session_by_final_digest ON session (final_sha256) WHERE state = 'finalizing';

-- Which session a repeated create means.
CREATE TABLE idempotency_key (
    owner TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    -- Of the request, so that the key cannot be used for another one.
    fingerprint TEXT NOT NULL,
    session BIGINT NOT NULL REFERENCES session (number) ON DELETE CASCADE,
    PRIMARY KEY (owner, key)
);

CREATE INDEX idempotency_key_by_session ON idempotency_key (session);

-- Chunks whose bytes are durable and verified. After completion they are the file's chunk list.
CREATE TABLE chunk (
    session BIGINT NOT NULL,
    idx INTEGER NOT NULL CHECK (idx >= 0 AND idx < 1048576),
    byte_count BIGINT NOT NULL CHECK (byte_count > 0),
    chunk_size BIGINT NOT NULL,
    sha256 BYTEA NOT NULL CHECK (octet_length(sha256) = 32),
    PRIMARY KEY (session, idx),
    FOREIGN KEY (session, chunk_size) REFERENCES session (number, chunk_size) ON DELETE CASCADE,
    CHECK (byte_count <= chunk_size)
);

-- Durable first bytes of chunks that are not complete yet.
CREATE TABLE partial_chunk (
    session BIGINT NOT NULL,
    idx INTEGER NOT NULL CHECK (idx >= 0 AND idx < 1048576),
    byte_count BIGINT NOT NULL CHECK (byte_count > 0),
    chunk_size BIGINT NOT NULL,
    -- Saved state of the hash that has seen exactly these bytes.
    hash_state BYTEA NOT NULL CHECK (octet_length(hash_state) > 0),
    -- What the sender announced for the whole chunk.
    declared_sha256 BYTEA CHECK (octet_length(declared_sha256) = 32),
    PRIMARY KEY (session, idx),
    FOREIGN KEY (session, chunk_size) REFERENCES session (number, chunk_size) ON DELETE CASCADE,
    CHECK (byte_count < chunk_size)
);

-- Finished files. A deleted one stays, so that its id answers as gone and is never used again.
CREATE TABLE file (
    id TEXT COLLATE "C" PRIMARY KEY CHECK (id ~ '^[0-9a-f]{32}$'),
    owner TEXT COLLATE "C" NOT NULL CHECK (owner <> ''),
    session_id TEXT COLLATE "C" NOT NULL UNIQUE CHECK (session_id ~ '^[0-9a-f]{32}$'),
    -- Holds the chunk list. It may go only after the file.
    session BIGINT UNIQUE REFERENCES session (number) ON DELETE SET NULL,
    file_name TEXT NOT NULL,
    mime_type TEXT,
    byte_count BIGINT NOT NULL CHECK (byte_count >= 0),
    sha256 BYTEA NOT NULL CHECK (octet_length(sha256) = 32),
    chunk_size BIGINT NOT NULL CHECK (chunk_size > 0),
    created_at BIGINT NOT NULL,
    deleted_at BIGINT,
    CHECK (session IS NOT NULL OR deleted_at IS NOT NULL)
);

CREATE INDEX file_newest_first ON file (owner, created_at DESC, id DESC)
    WHERE deleted_at IS NULL;
CREATE INDEX file_by_digest ON file (sha256, id) WHERE deleted_at IS NULL;
CREATE INDEX file_with_orphaned_session ON file (session)
    WHERE deleted_at IS NOT NULL AND session IS NOT NULL;

-- Bytes that no row above needs and that a sweep removes: the row here goes after the bytes.
CREATE TABLE garbage (
    kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('staging', 'blob')),
    -- A staging key, or the digest of a blob in hexadecimal.
    key TEXT COLLATE "C" NOT NULL,
    -- Until then one node alone removes it; 0 before anybody tries.
    lease_until BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, key),
    CHECK (CASE kind WHEN 'staging' THEN key ~ '^[0-9a-f]{32}$' ELSE key ~ '^[0-9a-f]{64}$' END)
);

CREATE INDEX garbage_by_lease ON garbage (lease_until);
