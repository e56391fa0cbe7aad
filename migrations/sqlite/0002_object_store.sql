-- What a store of objects needs to have remembered for it: where it put chunks and blobs, and what it has
-- under way. A store that names bytes by their key or digest leaves all of this empty.

-- The store's own word about the staging area, such as the multipart upload that collects its chunks.
ALTER TABLE session ADD COLUMN staging_state TEXT
    CHECK (staging_state IS NULL OR staging_key IS NOT NULL);
ALTER TABLE chunk ADD COLUMN location TEXT;
ALTER TABLE partial_chunk ADD COLUMN location TEXT;
-- The staging state of the session that left these bytes.
ALTER TABLE garbage ADD COLUMN state TEXT CHECK (state IS NULL OR kind = 'staging');

-- Blobs that are not named by their digest. A row is here as long as a file needs the blob; then the
-- staging area that it came from becomes garbage.
CREATE TABLE blob (
    sha256 BLOB PRIMARY KEY CHECK (length(sha256) = 32),
    byte_count INTEGER NOT NULL CHECK (byte_count >= 0),
    staging_key TEXT NOT NULL UNIQUE
        CHECK (length(staging_key) = 32 AND staging_key NOT GLOB '*[^0-9a-f]*'),
    location TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Finalizes that were promised to a client, so that they are done whoever dies.
CREATE TABLE finalize_job (
    session INTEGER PRIMARY KEY REFERENCES session (number) ON DELETE CASCADE,
    -- What the client expects the file to be.
    expected_sha256 BLOB CHECK (length(expected_sha256) = 32),
    -- Until then this node does it.
    holder TEXT NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;

CREATE INDEX finalize_job_by_lease ON finalize_job (lease_until);
