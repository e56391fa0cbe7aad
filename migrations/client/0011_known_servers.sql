-- A password in the address has no business here; such a server is met anew.
DELETE FROM known_server WHERE server_url LIKE '%@%';

-- Servers that files were downloaded from by their ids have answered as well.
INSERT OR IGNORE INTO known_server
    SELECT server_url, min(updated_at) FROM download_transfer
    WHERE remote_file_id IS NOT NULL AND expected_size IS NOT NULL
        AND server_url NOT LIKE '%@%'
    GROUP BY server_url;
