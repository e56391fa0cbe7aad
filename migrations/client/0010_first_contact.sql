-- The try that failed last: why, where, how many in a row, and when the next one is.
ALTER TABLE upload_transfer ADD COLUMN attempt_cause TEXT;
ALTER TABLE upload_transfer ADD COLUMN attempt_host TEXT;
ALTER TABLE upload_transfer ADD COLUMN attempt_port INTEGER;
ALTER TABLE upload_transfer ADD COLUMN attempt_number INTEGER CHECK (attempt_number > 0);
ALTER TABLE upload_transfer ADD COLUMN next_attempt_at INTEGER;
ALTER TABLE download_transfer ADD COLUMN attempt_cause TEXT;
ALTER TABLE download_transfer ADD COLUMN attempt_host TEXT;
ALTER TABLE download_transfer ADD COLUMN attempt_port INTEGER;
ALTER TABLE download_transfer ADD COLUMN attempt_number INTEGER CHECK (attempt_number > 0);
ALTER TABLE download_transfer ADD COLUMN next_attempt_at INTEGER;

-- Servers that answered as a Kedge does, by the address under which they were named.
CREATE TABLE known_server (
    server_url TEXT NOT NULL PRIMARY KEY CHECK (server_url <> ''),
    first_answered_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO known_server
    SELECT server_url, min(updated_at) FROM upload_transfer
    WHERE dialect = 'native' AND (session_id IS NOT NULL OR remote_file_id IS NOT NULL)
    GROUP BY server_url;
