-- Bytes of a chunk that must not lie over others that were acknowledged before.

-- Together with a rest it did not have the digest that was named: offered to appends only, until another body for the
-- chunk has come whole.
ALTER TABLE partial_chunk ADD COLUMN in_doubt INTEGER NOT NULL DEFAULT 0 CHECK (in_doubt IN (0, 1));

-- Durable first bytes of another body for a chunk that has a partial. They lie beside that one's, and replace them
-- when they are whole.
CREATE TABLE rival_partial (
    session INTEGER NOT NULL,
    idx INTEGER NOT NULL CHECK (idx >= 0 AND idx < 1048576),
    byte_count INTEGER NOT NULL CHECK (byte_count > 0),
    chunk_size INTEGER NOT NULL,
    hash_state BLOB NOT NULL CHECK (length(hash_state) > 0),
    declared_sha256 BLOB NOT NULL CHECK (length(declared_sha256) = 32),
    location TEXT,
    PRIMARY KEY (session, idx),
    FOREIGN KEY (session, chunk_size) REFERENCES session (number, chunk_size) ON DELETE CASCADE,
    CHECK (byte_count < chunk_size)
) STRICT, WITHOUT ROWID;
