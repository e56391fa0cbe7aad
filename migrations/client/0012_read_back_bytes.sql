-- Bytes that were read again for the hash of the whole file, by the run that computed it.
ALTER TABLE upload_transfer ADD COLUMN read_back_bytes INTEGER NOT NULL DEFAULT 0
    CHECK (read_back_bytes >= 0);
ALTER TABLE download_transfer ADD COLUMN read_back_bytes INTEGER NOT NULL DEFAULT 0
    CHECK (read_back_bytes >= 0);
