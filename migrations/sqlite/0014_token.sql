-- API tokens. The secret of a token is not stored, only its digest. A revoked token stays, so that its holder learns
-- why it is refused, and the list shows it.
CREATE TABLE token (
    id TEXT PRIMARY KEY CHECK (length(id) = 12 AND id NOT GLOB '*[^0-9A-Za-z]*'),
    secret_sha256 BLOB NOT NULL CHECK (length(secret_sha256) = 32),
    owner TEXT NOT NULL CHECK (owner <> ''),
    -- Names of scopes, separated by commas.
    scopes TEXT NOT NULL,
    -- For people.
    name TEXT NOT NULL CHECK (name <> ''),
    -- The principal that made the token.
    created_by TEXT NOT NULL CHECK (created_by <> ''),
    created_at INTEGER NOT NULL,
    -- NULL for a token that does not expire.
    expires_at INTEGER,
    -- At most a minute behind. NULL before the first use.
    last_used_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX token_by_owner ON token (owner, created_at DESC, id DESC);
