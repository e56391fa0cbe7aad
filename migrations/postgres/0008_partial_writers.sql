-- Who wrote the first bytes of a chunk last. A crash of the database empties writer_lease; these columns stay, so
-- that a writer that was replaced before the crash cannot shorten or remove what its successor acknowledged.

-- Token of the writer that saved the row; NULL when it had none.
ALTER TABLE partial_chunk ADD COLUMN writer TEXT COLLATE "C";
-- The session's revision that saved the row. A writer that knew a revision before this one when it got the chunk, and
-- did not save the row itself, was replaced.
ALTER TABLE partial_chunk ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;

-- For nodes of the version before, which do not set the revision: their saves count as those of an unknown writer,
-- and never shorten what is there.
CREATE FUNCTION guard_partial_chunk() RETURNS trigger LANGUAGE plpgsql STABLE AS $guard$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.session <> OLD.session THEN
            -- A new session takes the bytes over; nobody has written to it.
            NEW.writer := NULL;
            NEW.revision := 0;
            RETURN NEW;
        END IF;
        IF NEW.revision <> OLD.revision THEN RETURN NEW; END IF;
        IF NEW.byte_count < OLD.byte_count THEN RETURN NULL; END IF;
    ELSIF NEW.revision <> 0 THEN
        RETURN NEW;
    END IF;
    NEW.writer := NULL;
    -- The statement that saves the row raises the session's revision to this one; it is not seen yet.
    SELECT session.revision + 1 INTO NEW.revision FROM session WHERE session.number = NEW.session;
    RETURN NEW;
END
$guard$;

CREATE TRIGGER guard_partial_chunk BEFORE INSERT OR UPDATE ON partial_chunk
    FOR EACH ROW EXECUTE FUNCTION guard_partial_chunk();
