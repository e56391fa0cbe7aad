-- API tokens. The secret of a token is not stored, only its digest. A revoked token stays, so that its holder learns
-- why it is refused, and the list shows it.
CREATE TABLE token (
    id TEXT COLLATE "C" PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{12}$'),
    secret_sha256 BYTEA NOT NULL CHECK (octet_length(secret_sha256) = 32),
    owner TEXT COLLATE "C" NOT NULL CHECK (owner <> ''),
    -- Names of scopes, separated by commas.
    scopes TEXT NOT NULL,
    -- For people.
    name TEXT NOT NULL CHECK (name <> ''),
    -- The principal that made the token.
    created_by TEXT NOT NULL CHECK (created_by <> ''),
    created_at BIGINT NOT NULL,
    -- NULL for a token that does not expire.
    expires_at BIGINT,
    -- At most a minute behind. NULL before the first use.
    last_used_at BIGINT,
    revoked_at BIGINT
);

CREATE INDEX token_by_owner ON token (owner, created_at DESC, id DESC);
