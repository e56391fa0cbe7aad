-- A file with the right bytes was found at the destination, and the attempt to sync it may have failed:
-- later syncs of that file prove nothing.
ALTER TABLE download_transfer ADD COLUMN is_destination_in_doubt INTEGER NOT NULL DEFAULT 0
    CHECK (is_destination_in_doubt IN (0, 1));
