-- The session that a person named, whose file is compared with what the server has before anything is sent:
-- from then on it is the session of the upload. No other session is begun in its place.
ALTER TABLE upload_transfer ADD COLUMN given_session_id TEXT CHECK (length(given_session_id) = 32);
