-- What each owner has stored and reserved, and the limits of that. The database keeps the sums itself, by triggers:
-- so they hold whichever version of the program writes, and no operation can forget them.

-- Bytes reserved for the session; NULL for its file size. Counts while the session is open or finalizing.
ALTER TABLE session ADD COLUMN reserved_bytes INTEGER CHECK (reserved_bytes >= 0);

CREATE TABLE owner (
    owner TEXT PRIMARY KEY CHECK (owner <> ''),
    -- NULL for the value of the settings, 0 for no limit.
    max_stored_bytes INTEGER CHECK (max_stored_bytes >= 0),
    max_open_sessions INTEGER CHECK (max_open_sessions >= 0),
    max_file_bytes INTEGER CHECK (max_file_bytes >= 0),
    -- Bytes of files that are not deleted. Equal files count each.
    stored_bytes INTEGER NOT NULL DEFAULT 0 CHECK (stored_bytes >= 0),
    -- Bytes of sessions that are open or finalizing, and the number of these sessions.
    reserved_bytes INTEGER NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0),
    open_sessions INTEGER NOT NULL DEFAULT 0 CHECK (open_sessions >= 0),
    blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1))
) STRICT, WITHOUT ROWID;

INSERT INTO owner (owner, stored_bytes, reserved_bytes, open_sessions)
SELECT owner, sum(stored), sum(reserved), sum(open)
FROM (
    SELECT owner, byte_count AS stored, 0 AS reserved, 0 AS open FROM file WHERE deleted_at IS NULL
    UNION ALL
    SELECT owner, 0, coalesce(file_size, 0), 1 FROM session WHERE state IN ('open', 'finalizing'))
GROUP BY owner;

-- A sum stops at 0. A wrong one is a finding of `kedge fsck`, and must not keep a session or file from being removed.

CREATE TRIGGER session_adds_to_owner AFTER INSERT ON session
WHEN NEW.state IN ('open', 'finalizing')
BEGIN
    INSERT INTO owner (owner, reserved_bytes, open_sessions)
    VALUES (NEW.owner, coalesce(NEW.reserved_bytes, NEW.file_size, 0), 1)
    ON CONFLICT (owner) DO UPDATE SET
        reserved_bytes = reserved_bytes + excluded.reserved_bytes, open_sessions = open_sessions + 1;
END;

CREATE TRIGGER session_leaves_owner AFTER DELETE ON session
WHEN OLD.state IN ('open', 'finalizing')
BEGIN
    UPDATE owner SET
        reserved_bytes = max(0, reserved_bytes - coalesce(OLD.reserved_bytes, OLD.file_size, 0)),
        open_sessions = max(0, open_sessions - 1)
    WHERE owner = OLD.owner;
END;

-- Only for real changes: a commit of a chunk updates its session, too.
CREATE TRIGGER session_changes_owner AFTER UPDATE OF owner, state, file_size, reserved_bytes ON session
WHEN (OLD.state IN ('open', 'finalizing')) <> (NEW.state IN ('open', 'finalizing'))
    OR (NEW.state IN ('open', 'finalizing') AND (
        NEW.owner <> OLD.owner
        OR coalesce(NEW.reserved_bytes, NEW.file_size, 0) <> coalesce(OLD.reserved_bytes, OLD.file_size, 0)))
BEGIN
    UPDATE owner SET
        reserved_bytes = max(0, reserved_bytes - coalesce(OLD.reserved_bytes, OLD.file_size, 0)),
        open_sessions = max(0, open_sessions - 1)
    WHERE owner = OLD.owner AND OLD.state IN ('open', 'finalizing');
    INSERT INTO owner (owner, reserved_bytes, open_sessions)
    SELECT NEW.owner, coalesce(NEW.reserved_bytes, NEW.file_size, 0), 1
    WHERE NEW.state IN ('open', 'finalizing')
    ON CONFLICT (owner) DO UPDATE SET
        reserved_bytes = reserved_bytes + excluded.reserved_bytes, open_sessions = open_sessions + 1;
END;

CREATE TRIGGER file_adds_to_owner AFTER INSERT ON file
WHEN NEW.deleted_at IS NULL
BEGIN
    INSERT INTO owner (owner, stored_bytes) VALUES (NEW.owner, NEW.byte_count)
    ON CONFLICT (owner) DO UPDATE SET stored_bytes = stored_bytes + excluded.stored_bytes;
END;

CREATE TRIGGER file_leaves_owner AFTER DELETE ON file
WHEN OLD.deleted_at IS NULL
BEGIN
    UPDATE owner SET stored_bytes = max(0, stored_bytes - OLD.byte_count) WHERE owner = OLD.owner;
END;

CREATE TRIGGER file_changes_owner AFTER UPDATE OF owner, byte_count, deleted_at ON file
WHEN (OLD.deleted_at IS NULL) <> (NEW.deleted_at IS NULL)
    OR (NEW.deleted_at IS NULL AND (NEW.owner <> OLD.owner OR NEW.byte_count <> OLD.byte_count))
BEGIN
    UPDATE owner SET stored_bytes = max(0, stored_bytes - OLD.byte_count)
    WHERE owner = OLD.owner AND OLD.deleted_at IS NULL;
    INSERT INTO owner (owner, stored_bytes) SELECT NEW.owner, NEW.byte_count WHERE NEW.deleted_at IS NULL
    ON CONFLICT (owner) DO UPDATE SET stored_bytes = stored_bytes + excluded.stored_bytes;
END;
