-- The link that permits the upload, and the link of its session, which the service gives with the session. Both are
-- secrets, and go when the upload ends; `is_link_redacted` says that there was one that the upload cannot do without.
ALTER TABLE upload_transfer ADD COLUMN link TEXT CHECK (link <> '');
ALTER TABLE upload_transfer ADD COLUMN session_link TEXT CHECK (session_link <> '');
ALTER TABLE upload_transfer ADD COLUMN is_link_redacted INTEGER NOT NULL DEFAULT 0
    CHECK (is_link_redacted IN (0, 1));
