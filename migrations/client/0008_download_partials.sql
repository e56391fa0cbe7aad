-- What there is of a download's unfinished chunks in its temporary file. Bytes are noted without a sync, which
-- the end of the process survives, and synced less often, which a power cut survives. What was noted and
-- not synced is held against the state of its hash before it counts.

CREATE TABLE download_partial (
    transfer_id TEXT NOT NULL,
    chunk_index INTEGER NOT NULL CHECK (chunk_index >= 0),
    noted_bytes INTEGER NOT NULL CHECK (noted_bytes > 0),
    noted_state BLOB NOT NULL,
    synced_bytes INTEGER NOT NULL DEFAULT 0 CHECK (synced_bytes BETWEEN 0 AND noted_bytes),
    synced_state BLOB,
    PRIMARY KEY (transfer_id, chunk_index),
    CHECK ((synced_state IS NULL) = (synced_bytes = 0))
) STRICT, WITHOUT ROWID;

-- As triggers, because a process of the version before may be at work on the same records.
CREATE TRIGGER download_partial_ended AFTER UPDATE OF state ON download_transfer
WHEN NEW.state IN ('completed', 'canceled')
BEGIN
    DELETE FROM download_partial WHERE transfer_id = NEW.transfer_id;
END;

-- Forgetting what was downloaded sets an empty list of chunks, also when it was empty before.
CREATE TRIGGER download_partial_forgotten AFTER UPDATE OF downloaded_chunks ON download_transfer
WHEN length(NEW.downloaded_chunks) = 0
BEGIN
    DELETE FROM download_partial WHERE transfer_id = NEW.transfer_id;
END;

CREATE TRIGGER download_partial_outdated
AFTER UPDATE OF temp_inode, etag, expected_size, chunk_size ON download_transfer
WHEN NEW.temp_inode IS NOT OLD.temp_inode OR NEW.etag IS NOT OLD.etag
    OR NEW.expected_size IS NOT OLD.expected_size OR NEW.chunk_size IS NOT OLD.chunk_size
BEGIN
    DELETE FROM download_partial WHERE transfer_id = NEW.transfer_id;
END;
