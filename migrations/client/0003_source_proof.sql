-- What proves that the file to upload is still the one that was begun with: its time of change, and the
-- digest of each chunk as it was read. Rows from before have neither.

ALTER TABLE upload_transfer ADD COLUMN changed_nanoseconds INTEGER;

CREATE TABLE upload_chunk_digest (
    transfer_id TEXT NOT NULL,
    chunk_index INTEGER NOT NULL CHECK (chunk_index >= 0),
    sha256 BLOB NOT NULL CHECK (length(sha256) = 32),
    PRIMARY KEY (transfer_id, chunk_index)
) STRICT, WITHOUT ROWID;

-- As triggers, because a process of the version before may be at work on the same records.
CREATE TRIGGER upload_chunk_digest_ended AFTER UPDATE OF state ON upload_transfer
WHEN NEW.state IN ('completed', 'canceled')
BEGIN
    DELETE FROM upload_chunk_digest WHERE transfer_id = NEW.transfer_id;
END;

CREATE TRIGGER upload_chunk_digest_resized AFTER UPDATE OF chunk_size ON upload_transfer
WHEN NEW.chunk_size <> OLD.chunk_size
BEGIN
    DELETE FROM upload_chunk_digest WHERE transfer_id = NEW.transfer_id;
END;
