-- Bytes of a chunk that must not lie over others that were acknowledged before.

-- Together with a rest it did not have the digest that was named: offered to appends only, until another body for the
-- chunk has come whole.
ALTER TABLE partial_chunk ADD COLUMN in_doubt BOOLEAN NOT NULL DEFAULT false;

-- Durable first bytes of another body for a chunk that has a partial. They lie beside that one's, and replace them
-- when they are whole.
CREATE TABLE rival_partial (
    session BIGINT NOT NULL,
    idx INTEGER NOT NULL CHECK (idx >= 0 AND idx < 1048576),
    byte_count BIGINT NOT NULL CHECK (byte_count > 0),
    chunk_size BIGINT NOT NULL,
    hash_state BYTEA NOT NULL CHECK (octet_length(hash_state) > 0),
    declared_sha256 BYTEA NOT NULL CHECK (octet_length(declared_sha256) = 32),
    location TEXT,
    -- As those of partial_chunk.
    writer TEXT COLLATE "C",
    revision BIGINT NOT NULL,
    PRIMARY KEY (session, idx),
    FOREIGN KEY (session, chunk_size) REFERENCES session (number, chunk_size) ON DELETE CASCADE,
    CHECK (byte_count < chunk_size)
);
