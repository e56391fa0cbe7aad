-- The column etag has whatever names the version of the file: an entity tag or a modification date. A weak
-- one can tell two versions apart, and cannot prove that two are the same.

ALTER TABLE download_transfer ADD COLUMN is_validator_weak INTEGER NOT NULL DEFAULT 0
    CHECK (is_validator_weak IN (0, 1));

-- The user lets the download go on where nothing proves that the file is the same.
ALTER TABLE download_transfer ADD COLUMN resumes_unverified INTEGER NOT NULL DEFAULT 0
    CHECK (resumes_unverified IN (0, 1));
