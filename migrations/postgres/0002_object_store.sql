-- What a store of objects needs to find its bytes again, and finalizes that take long.

-- What the byte store recorded for a staging area, such as an upload that collects the chunks.
ALTER TABLE session
    ADD COLUMN staging_state TEXT CHECK (staging_state IS NULL OR staging_key IS NOT NULL);
-- Where the byte store put the bytes; NULL when it finds them without.
ALTER TABLE chunk ADD COLUMN location TEXT;
ALTER TABLE partial_chunk ADD COLUMN location TEXT;
-- The staging area's state, which the one who removes it needs.
ALTER TABLE garbage ADD COLUMN state TEXT CHECK (state IS NULL OR kind = 'staging');

-- Blobs that are not named by their digest: where the bytes are. Goes with the last file.
CREATE TABLE blob (
    sha256 BYTEA PRIMARY KEY CHECK (octet_length(sha256) = 32),
    byte_count BIGINT NOT NULL CHECK (byte_count >= 0),
    -- The staging area that it was.
    staging_key TEXT COLLATE "C" NOT NULL UNIQUE CHECK (staging_key ~ '^[0-9a-f]{32}$'),
    location TEXT NOT NULL
);

-- Finalizes that were promised to a client, and who does the work.
CREATE TABLE finalize_job (
    session BIGINT PRIMARY KEY REFERENCES session (number) ON DELETE CASCADE,
    -- What the client expects the file to be.
    expected_sha256 BYTEA CHECK (octet_length(expected_sha256) = 32),
    holder TEXT NOT NULL,
    lease_until BIGINT NOT NULL
);

CREATE INDEX finalize_job_by_lease ON finalize_job (lease_until);
