-- When the bytes of the blob were last stored by an upload that verified them; NULL for blobs that an older version
-- stored. A new session may use stored bytes only if they were verified lately, by such an upload or by the scrub.
ALTER TABLE blob_scrub ADD COLUMN stored_at bigint;

-- Finds the files of an owner that have the size of a new upload.
CREATE INDEX file_by_size ON file (owner, byte_count, created_at DESC, id DESC) WHERE deleted_at IS NULL;
