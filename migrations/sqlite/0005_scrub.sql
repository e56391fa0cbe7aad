-- Bytes at rest are read again: what is known of each blob, and copies that are kept until a later copy of
-- the same bytes was read.

-- One row for each blob that a file needs.
CREATE TABLE blob_scrub (
    sha256 BLOB PRIMARY KEY CHECK (length(sha256) = 32),
    byte_count INTEGER NOT NULL CHECK (byte_count >= 0),
    -- Grows when other bytes become the blob, so that a verdict on earlier ones does not count.
    generation INTEGER NOT NULL DEFAULT 1,
    -- When these bytes were last read and found right; NULL before they were read at all. 0 for blobs
    -- from before this table.
    verified_at INTEGER,
    -- Since when they are known to be damaged; NULL while they are not.
    damaged_at INTEGER,
    -- When they are to be read next.
    due_at INTEGER NOT NULL,
    -- Bytes from the start that an interrupted reading has found right.
    checked_bytes INTEGER NOT NULL DEFAULT 0 CHECK (checked_bytes >= 0),
    -- Until then one node alone reads them.
    holder TEXT,
    lease_until INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- The newest file of each blob has the chunk list that it is compared with.
CREATE INDEX file_by_digest_newest_first ON file (sha256, created_at DESC, id DESC)
    WHERE deleted_at IS NULL;
CREATE INDEX blob_scrub_by_due ON blob_scrub (due_at);
CREATE INDEX blob_scrub_new ON blob_scrub (due_at)
    WHERE verified_at IS NULL AND damaged_at IS NULL;
CREATE INDEX blob_scrub_damaged ON blob_scrub (sha256) WHERE damaged_at IS NOT NULL;

INSERT INTO blob_scrub (sha256, byte_count, verified_at, due_at)
SELECT sha256, max(byte_count), 0, 0 FROM file WHERE deleted_at IS NULL GROUP BY sha256;

-- Copies of blobs whose name a later upload of the same bytes has taken.
CREATE TABLE superseded_blob (
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    -- Where blobs are named by their digest: the staging area that took the name. Elsewhere: the staging
    -- area that the copy was.
    staging_key TEXT NOT NULL UNIQUE
        CHECK (length(staging_key) = 32 AND staging_key NOT GLOB '*[^0-9a-f]*'),
    byte_count INTEGER NOT NULL CHECK (byte_count >= 0),
    -- NULL where blobs are named by their digest.
    location TEXT,
    -- Until then readers may still read it.
    keep_until INTEGER NOT NULL,
    PRIMARY KEY (sha256, staging_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX superseded_blob_by_time ON superseded_blob (keep_until);
