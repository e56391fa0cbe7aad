-- What several nodes on one database need to know of each other.

-- The place of the bytes that the rows are about; one row.
CREATE TABLE byte_place (
    id BOOLEAN PRIMARY KEY DEFAULT true CHECK (id),
    identity TEXT NOT NULL
);

-- Grows with every change of the session, its chunks or its partials.
ALTER TABLE session ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
-- The last revision that took chunks back: who knows less must forget what it knew.
ALTER TABLE session ADD COLUMN reset_revision BIGINT NOT NULL DEFAULT 0;
-- The revision with which the chunk came.
ALTER TABLE chunk ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
-- For what came since a revision. Rows never change it, so each chunk pays for one entry.
CREATE INDEX chunk_by_revision ON chunk (session, revision);

-- Who writes which chunk. Not logged: a crash of the database loses it, which lets a second writer
-- begin beside the first; the token that is stored then fences the older one. It costs no flush.
CREATE UNLOGGED TABLE writer_lease (
    session_id TEXT COLLATE "C" NOT NULL,
    idx INTEGER NOT NULL,
    token TEXT COLLATE "C" NOT NULL,
    lease_until BIGINT NOT NULL,
    -- Another node asks for the chunk.
    wanted BOOLEAN NOT NULL,
    PRIMARY KEY (session_id, idx)
);

-- Empty after a crash of the database or on another server, because it is not logged: the number of a
-- transaction says something about that transaction only as long as the text here is the same. A crash
-- may give the number of a lost transaction to another one.
CREATE UNLOGGED TABLE server_life (
    id BOOLEAN PRIMARY KEY DEFAULT true CHECK (id),
    name TEXT NOT NULL
);
