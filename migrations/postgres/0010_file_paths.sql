-- The path that a client stored in the metadata of the session, so that files can be listed by folder. NULL without
-- one, and for files that an older version finished. Compared byte by byte: the index serves folders as ranges.
ALTER TABLE file ADD COLUMN path TEXT COLLATE "C" CHECK (octet_length(path) BETWEEN 1 AND 1024);

CREATE INDEX file_by_path ON file (owner, path, created_at DESC, id DESC)
    WHERE deleted_at IS NULL AND path IS NOT NULL;
