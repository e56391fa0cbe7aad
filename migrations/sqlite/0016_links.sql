-- Keys of links, uses of links, and links that were revoked.

-- A key is derived from a master key outside the database and from its id, so a copy of these rows signs nothing.
CREATE TABLE signing_key (
    -- Appears in each link that the key signs.
    id TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 32 AND id NOT GLOB '*[^0-9A-Za-z]*'),
    master_fingerprint TEXT NOT NULL
        CHECK (length(master_fingerprint) = 16 AND master_fingerprint NOT GLOB '*[^0-9a-f]*'),
    created_at INTEGER NOT NULL,
    -- NULL while the key is in use.
    signs_until INTEGER,
    -- NULL while its links have no common end.
    verifies_until INTEGER
) STRICT, WITHOUT ROWID;

-- Stored until the link has expired, also when its session is gone.
CREATE TABLE revoked_link (
    link_id TEXT PRIMARY KEY CHECK (length(link_id) = 32 AND link_id NOT GLOB '*[^0-9a-f]*'),
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX revoked_link_by_end ON revoked_link (until);

-- The sessions that a link has created. One that was canceled or has expired does not count. The row of a completed
-- one stays until the link has expired, also when its session is gone: the link must not become usable again.
CREATE TABLE link_use (
    session_id TEXT PRIMARY KEY CHECK (length(session_id) = 32 AND session_id NOT GLOB '*[^0-9a-f]*'),
    link_id TEXT NOT NULL CHECK (length(link_id) = 32 AND link_id NOT GLOB '*[^0-9a-f]*'),
    -- Of the request, so that a repetition gets the session and another request is refused.
    fingerprint TEXT NOT NULL,
    -- The end of the link.
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX link_use_by_link ON link_use (link_id);
CREATE INDEX link_use_by_end ON link_use (expires_at);

-- Limits on the size of the file that the permission of the session sets. The program checks them before; these
-- constraints hold whichever version of it declares the size.
ALTER TABLE session ADD COLUMN max_byte_count INTEGER
    CHECK (max_byte_count >= 0 AND (file_size IS NULL OR file_size <= max_byte_count));
ALTER TABLE session ADD COLUMN min_byte_count INTEGER
    CHECK (min_byte_count >= 0 AND (file_size IS NULL OR file_size >= min_byte_count));
-- The token or principal that created the session; NULL when it is not known.
ALTER TABLE session ADD COLUMN created_by TEXT;
-- The link that created the session.
ALTER TABLE session ADD COLUMN link_id TEXT;

-- Here, so that it holds whichever version of the program deletes the session.
CREATE TRIGGER session_returns_link_use AFTER DELETE ON session
WHEN OLD.link_id IS NOT NULL AND OLD.state <> 'completed'
BEGIN
    DELETE FROM link_use WHERE session_id = OLD.id;
END;
