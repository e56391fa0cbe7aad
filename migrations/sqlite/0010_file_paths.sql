-- The path that a client stored in the metadata of the session, so that files can be listed by folder. NULL without
-- one, and for files that an older version finished.
ALTER TABLE file ADD COLUMN path TEXT CHECK (length(CAST(path AS BLOB)) BETWEEN 1 AND 1024);

CREATE INDEX file_by_path ON file (owner, path, created_at DESC, id DESC)
    WHERE deleted_at IS NULL AND path IS NOT NULL;
