-- Metadata to store with an upload: a JSON object with text values. NULL for none.
ALTER TABLE upload_transfer ADD COLUMN metadata TEXT CHECK (metadata GLOB '{*}');
