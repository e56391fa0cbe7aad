-- How many uploads were made of a session, or begun to be. Each copies its bytes, so the number is bounded.
ALTER TABLE session ADD COLUMN composition_count INTEGER NOT NULL DEFAULT 0
    CHECK (composition_count >= 0);
