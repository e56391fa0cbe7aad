-- What each owner has stored and reserved, and the limits of that. The database keeps the sums itself, by triggers:
-- so they hold whichever version of the program writes, and no operation can forget them.

-- Bytes reserved for the session; NULL for its file size. Counts while the session is open or finalizing. This
-- statement and the next one keep running nodes from changing a session or file until the sums are complete.
ALTER TABLE session ADD COLUMN reserved_bytes BIGINT CHECK (reserved_bytes >= 0);
LOCK TABLE file IN SHARE ROW EXCLUSIVE MODE;

-- Rows change often and no index has their sums: with room in the page, an update makes no index entry.
CREATE TABLE owner (
    owner TEXT COLLATE "C" PRIMARY KEY CHECK (owner <> ''),
    -- NULL for the value of the settings, 0 for no limit.
    max_stored_bytes BIGINT CHECK (max_stored_bytes >= 0),
    max_open_sessions BIGINT CHECK (max_open_sessions >= 0),
    max_file_bytes BIGINT CHECK (max_file_bytes >= 0),
    -- Bytes of files that are not deleted. Equal files count each.
    stored_bytes BIGINT NOT NULL DEFAULT 0 CHECK (stored_bytes >= 0),
    -- Bytes of sessions that are open or finalizing, and the number of these sessions.
    reserved_bytes BIGINT NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0),
    open_sessions BIGINT NOT NULL DEFAULT 0 CHECK (open_sessions >= 0),
    blocked BOOLEAN NOT NULL DEFAULT false
) WITH (fillfactor = 50);

INSERT INTO owner (owner, stored_bytes, reserved_bytes, open_sessions)
SELECT owner, sum(stored), sum(reserved), sum(open)
FROM (
    SELECT owner, byte_count AS stored, 0::bigint AS reserved, 0::bigint AS open
    FROM file WHERE deleted_at IS NULL
    UNION ALL
    SELECT owner, 0, coalesce(file_size, 0), 1
    FROM session WHERE state IN ('open', 'finalizing')) AS sums
GROUP BY owner;

-- A sum stops at 0. A wrong one is a finding of `kedge fsck`, and must not keep a session or file from being removed.
CREATE FUNCTION add_to_owner(name TEXT, stored BIGINT, reserved BIGINT, sessions BIGINT) RETURNS void
LANGUAGE plpgsql AS $add$
BEGIN
    INSERT INTO owner AS kept (owner, stored_bytes, reserved_bytes, open_sessions)
    VALUES (name, greatest(0, stored), greatest(0, reserved), greatest(0, sessions))
    ON CONFLICT (owner) DO UPDATE SET
        stored_bytes = greatest(0, kept.stored_bytes + stored),
        reserved_bytes = greatest(0, kept.reserved_bytes + reserved),
        open_sessions = greatest(0, kept.open_sessions + sessions);
END
$add$;

CREATE FUNCTION count_session() RETURNS trigger LANGUAGE plpgsql AS $count$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.owner = NEW.owner
        AND OLD.state IN ('open', 'finalizing') AND NEW.state IN ('open', 'finalizing')
    THEN
        PERFORM add_to_owner(NEW.owner, 0,
            coalesce(NEW.reserved_bytes, NEW.file_size, 0) - coalesce(OLD.reserved_bytes, OLD.file_size, 0), 0);
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' AND OLD.state IN ('open', 'finalizing') THEN
        PERFORM add_to_owner(OLD.owner, 0, -coalesce(OLD.reserved_bytes, OLD.file_size, 0), -1);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.state IN ('open', 'finalizing') THEN
        PERFORM add_to_owner(NEW.owner, 0, coalesce(NEW.reserved_bytes, NEW.file_size, 0), 1);
    END IF;
    RETURN NULL;
END
$count$;

CREATE TRIGGER session_adds_to_owner AFTER INSERT ON session
    FOR EACH ROW WHEN (NEW.state IN ('open', 'finalizing')) EXECUTE FUNCTION count_session();
CREATE TRIGGER session_leaves_owner AFTER DELETE ON session
    FOR EACH ROW WHEN (OLD.state IN ('open', 'finalizing')) EXECUTE FUNCTION count_session();
-- Only for real changes: a commit of a chunk updates its session, too, and must not wait for the owner's row.
CREATE TRIGGER session_changes_owner AFTER UPDATE OF owner, state, file_size, reserved_bytes ON session
    FOR EACH ROW WHEN (
        (OLD.state IN ('open', 'finalizing')) <> (NEW.state IN ('open', 'finalizing'))
        OR (NEW.state IN ('open', 'finalizing') AND (
            NEW.owner <> OLD.owner
            OR coalesce(NEW.reserved_bytes, NEW.file_size, 0)
                <> coalesce(OLD.reserved_bytes, OLD.file_size, 0))))
    EXECUTE FUNCTION count_session();

CREATE FUNCTION count_file() RETURNS trigger LANGUAGE plpgsql AS $count$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.deleted_at IS NULL THEN
        PERFORM add_to_owner(OLD.owner, -OLD.byte_count, 0, 0);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.deleted_at IS NULL THEN
        PERFORM add_to_owner(NEW.owner, NEW.byte_count, 0, 0);
    END IF;
    RETURN NULL;
END
$count$;

CREATE TRIGGER file_adds_to_owner AFTER INSERT ON file
    FOR EACH ROW WHEN (NEW.deleted_at IS NULL) EXECUTE FUNCTION count_file();
CREATE TRIGGER file_leaves_owner AFTER DELETE ON file
    FOR EACH ROW WHEN (OLD.deleted_at IS NULL) EXECUTE FUNCTION count_file();
CREATE TRIGGER file_changes_owner AFTER UPDATE OF owner, byte_count, deleted_at ON file
    FOR EACH ROW WHEN (
        (OLD.deleted_at IS NULL) <> (NEW.deleted_at IS NULL)
        OR (NEW.deleted_at IS NULL AND (NEW.owner <> OLD.owner OR NEW.byte_count <> OLD.byte_count)))
    EXECUTE FUNCTION count_file();
