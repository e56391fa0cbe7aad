-- Lists the unfinished sessions of an owner, newest first.
CREATE INDEX unfinished_session ON session (owner, created_at DESC, id DESC)
    WHERE state IN ('open', 'finalizing');
