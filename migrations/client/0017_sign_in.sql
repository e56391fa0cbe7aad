-- The transfer waits for a token that the server accepts. Its pause has the reason `constraint`, because the check of
-- the first migration knows no other one.
ALTER TABLE upload_transfer ADD COLUMN sign_in_needed INTEGER NOT NULL DEFAULT 0
    CHECK (sign_in_needed IN (0, 1));
ALTER TABLE download_transfer ADD COLUMN sign_in_needed INTEGER NOT NULL DEFAULT 0
    CHECK (sign_in_needed IN (0, 1));
