-- Time of the last modification of the uploaded file, in nanoseconds since 1970-01-01 UTC, as the client stored it in
-- the metadata of the session. NULL without one, and for files that an older version finished.
ALTER TABLE file ADD COLUMN modified_at INTEGER;
