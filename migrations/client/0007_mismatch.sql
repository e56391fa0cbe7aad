-- Bytes that did not have the digest they should have: what was expected and what was found, the last time for
-- each chunk; -1 is the whole file.
CREATE TABLE transfer_mismatch (
    transfer_id TEXT NOT NULL,
    chunk_index INTEGER NOT NULL CHECK (chunk_index >= -1),
    expected_sha256 BLOB NOT NULL CHECK (length(expected_sha256) = 32),
    actual_sha256 BLOB NOT NULL CHECK (length(actual_sha256) = 32),
    noticed_count INTEGER NOT NULL CHECK (noticed_count > 0),
    PRIMARY KEY (transfer_id, chunk_index)
) STRICT, WITHOUT ROWID;
