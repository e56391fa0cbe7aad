-- 1 for an upload whose bytes are sent even if the server has stored the same bytes for this user.
ALTER TABLE upload_transfer ADD COLUMN sends_all_bytes INTEGER NOT NULL DEFAULT 0
    CHECK (sends_all_bytes IN (0, 1));
