-- The modification time is kept: an upload stores that of its file with the session, and a download gives the stored
-- one to its file.
ALTER TABLE upload_transfer ADD COLUMN keeps_modification_time INTEGER NOT NULL DEFAULT 0
    CHECK (keeps_modification_time IN (0, 1));
ALTER TABLE download_transfer ADD COLUMN keeps_modification_time INTEGER NOT NULL DEFAULT 0
    CHECK (keeps_modification_time IN (0, 1));
