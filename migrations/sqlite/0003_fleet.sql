-- Whose bytes these rows are about. Rows of one place with the bytes of another would promise what is not
-- there.
CREATE TABLE byte_place (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    identity TEXT NOT NULL
) STRICT;
