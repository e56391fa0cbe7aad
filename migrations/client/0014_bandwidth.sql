-- The last request to change the limits of running commands. Rates in bytes a second; NULL for no limit. A command
-- adopts a request whose number has changed since it started.
CREATE TABLE bandwidth_request (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    number INTEGER NOT NULL CHECK (number > 0),
    upload INTEGER CHECK (upload > 0),
    download INTEGER CHECK (download > 0)
) STRICT;
