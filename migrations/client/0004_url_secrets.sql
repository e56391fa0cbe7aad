-- The user, password, query and fragment of a download's URL are gone, because it has ended.
ALTER TABLE download_transfer ADD COLUMN is_url_redacted INTEGER NOT NULL DEFAULT 0
    CHECK (is_url_redacted IN (0, 1));
