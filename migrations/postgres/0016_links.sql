-- Keys of links, uses of links, and links that were revoked.

-- A key is derived from a master key outside the database and from its id, so a copy of these rows signs nothing.
CREATE TABLE signing_key (
    -- Appears in each link that the key signs.
    id TEXT COLLATE "C" PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{1,32}$'),
    master_fingerprint TEXT COLLATE "C" NOT NULL CHECK (master_fingerprint ~ '^[0-9a-f]{16}$'),
    created_at BIGINT NOT NULL,
    -- NULL while the key is in use.
    signs_until BIGINT,
    -- NULL while its links have no common end.
    verifies_until BIGINT
);

-- Stored until the link has expired, also when its session is gone.
CREATE TABLE revoked_link (
    link_id TEXT COLLATE "C" PRIMARY KEY CHECK (link_id ~ '^[0-9a-f]{32}$'),
    until BIGINT NOT NULL
);

CREATE INDEX revoked_link_by_end ON revoked_link (until);

-- The sessions that a link has created. One that was canceled or has expired does not count. The row of a completed
-- one stays until the link has expired, also when its session is gone: the link must not become usable again.
CREATE TABLE link_use (
    session_id TEXT COLLATE "C" PRIMARY KEY CHECK (session_id ~ '^[0-9a-f]{32}$'),
    link_id TEXT COLLATE "C" NOT NULL CHECK (link_id ~ '^[0-9a-f]{32}$'),
    -- Of the request, so that a repetition gets the session and another request is refused.
    fingerprint TEXT NOT NULL,
    -- The end of the link.
    expires_at BIGINT NOT NULL
);

CREATE INDEX link_use_by_link ON link_use (link_id);
CREATE INDEX link_use_by_end ON link_use (expires_at);

-- Limits on the size of the file that the permission of the session sets. The program checks them before; these
-- constraints hold whichever version of it declares the size.
ALTER TABLE session
    ADD COLUMN max_byte_count BIGINT
        CHECK (max_byte_count >= 0 AND (file_size IS NULL OR file_size <= max_byte_count)),
    ADD COLUMN min_byte_count BIGINT
        CHECK (min_byte_count >= 0 AND (file_size IS NULL OR file_size >= min_byte_count)),
    -- The token or principal that created the session; NULL when it is not known.
    ADD COLUMN created_by TEXT,
    -- The link that created the session.
    ADD COLUMN link_id TEXT COLLATE "C";

-- Here, so that it holds whichever version of the program deletes the session.
CREATE FUNCTION return_link_use() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM link_use WHERE session_id = OLD.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER session_returns_link_use AFTER DELETE ON session
    FOR EACH ROW WHEN (OLD.link_id IS NOT NULL AND OLD.state <> 'completed')
    EXECUTE FUNCTION return_link_use();
