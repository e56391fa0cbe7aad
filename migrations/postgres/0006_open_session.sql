-- What bounds the number of open sessions: who began one, and whether it ever had a byte.

-- The network of the client: an IPv4 address or an IPv6 /64; NULL when it is not known.
ALTER TABLE session ADD COLUMN client TEXT COLLATE "C";
-- When the session began, until its first byte is recorded; NULL from then on, and for one that is made of
-- others.
ALTER TABLE session ADD COLUMN empty_since BIGINT;

CREATE INDEX empty_session ON session (client, number)
    WHERE empty_since IS NOT NULL AND state = 'open';
-- Counts what is open without looking at rows. The state changes once in a session's life.
CREATE INDEX open_session ON session (number) WHERE state = 'open';

-- Here, so that it holds whichever version of the program records a byte.
CREATE FUNCTION fill_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE session SET empty_since = NULL
    WHERE number = NEW.session AND empty_since IS NOT NULL;
    RETURN NULL;
END
$$;

CREATE TRIGGER chunk_fills_session AFTER INSERT ON chunk
    FOR EACH ROW EXECUTE FUNCTION fill_session();
CREATE TRIGGER partial_chunk_fills_session AFTER INSERT ON partial_chunk
    FOR EACH ROW EXECUTE FUNCTION fill_session();
