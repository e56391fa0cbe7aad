-- Uploads that are made of others.

-- The ids of the parts in the order of their bytes, with spaces between them.
ALTER TABLE session ADD COLUMN parts TEXT CHECK (length(parts) >= 32);

CREATE INDEX open_composition ON session (id) WHERE parts IS NOT NULL AND state = 'open';
