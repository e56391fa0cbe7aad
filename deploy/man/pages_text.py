"""Variables and files of the manual pages: name, side that uses it, and text."""

ENVIRONMENT = [
    ("KEDGE_SERVER", "client", "URL of the server, or @NAME of the settings, unless `--server` is given."),
    (
        "KEDGE_TOKEN",
        "client",
        "Token for that server, unless `--token` is given or the settings have a token for the server.",
    ),
    (
        "SSL_CERT_FILE",
        "client",
        "PEM file of the certificate authorities to trust instead of the system's, unless `--ca-file` is given.",
    ),
    ("NO_COLOR", "client", "Turns colours off if it is not empty, unless `--color always` is given."),
    ("TERM", "client", "With the value dumb, progress is written without redrawing a line."),
    (
        "XDG_STATE_HOME, HOME",
        "client",
        "Where the transfer records are; see FILES. A relative path in XDG_STATE_HOME is ignored.",
    ),
    (
        "XDG_CONFIG_HOME, HOME",
        "client",
        "Where the settings of the user are; see FILES. A relative path in XDG_CONFIG_HOME is ignored.",
    ),
    ("KEDGE_CONFIG", "service", "YAML file with settings, unless `--config` is given."),
    (
        "KEDGE_...",
        "service",
        "Each setting has a variable: its option of `kedge serve` in capitals, with _ for each hyphen, such as "
        "KEDGE_LIMITS_MAX_FILE_SIZE. An unknown KEDGE_ variable is an error.",
    ),
    (
        "PGPASSWORD",
        "service",
        "Password of the PostgreSQL database. The other variables of libpq are read, too.",
    ),
    (
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN",
        "service",
        "Keys of the bucket. They take precedence over every other source of keys.",
    ),
    (
        "AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE, HOME",
        "service",
        "Profile and file with keys of the bucket: by default the profile default of ~/.aws/credentials.",
    ),
    (
        "AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME, AWS_ENDPOINT_URL_STS",
        "service",
        "Temporary keys from a token of a web identity.",
    ),
    (
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, AWS_CONTAINER_CREDENTIALS_FULL_URI, "
        "AWS_CONTAINER_AUTHORIZATION_TOKEN, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "service",
        "Temporary keys from the endpoint of a container platform.",
    ),
    (
        "AWS_EC2_METADATA_DISABLED, AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "service",
        "Temporary keys from the endpoint of the machine; true turns this off.",
    ),
    ("AWS_REGION, AWS_DEFAULT_REGION", "service", "Region of the bucket, unless its URL names one."),
    ("TMPDIR", "service", "Directory of temporary files and, with a bucket, of the spool (default: /var/tmp)."),
    (
        "http_proxy, https_proxy, HTTPS_PROXY, all_proxy, ALL_PROXY, no_proxy, NO_PROXY",
        "both",
        "Proxies, and the hosts that are reached without one. HTTP_PROXY is ignored.",
    ),
]

FILES = [
    (
        "$XDG_STATE_HOME/kedge/transfers.sqlite",
        "client",
        "Transfer records. Without XDG_STATE_HOME they are in ~/.local/state/kedge. `--state-directory` names "
        "another directory.",
    ),
    (
        ".NAME.ID.kedge-part",
        "client",
        "Unfinished download, beside its destination. It becomes the destination when it is complete.",
    ),
    (
        "$XDG_CONFIG_HOME/kedge/config.yaml, servers.yaml",
        "client",
        "Settings of the user, and servers that `kedge login` saved. Without XDG_CONFIG_HOME they are in "
        "~/.config/kedge.",
    ),
    (
        "~/.config/kedge/kedge.env",
        "client",
        "Variables for the user unit kedge-resume.service, which resumes all transfers after a login or a boot.",
    ),
    ("/etc/kedge/kedge.yaml", "service", "Settings of the system unit kedge.service."),
    ("/etc/kedge/kedge.env", "service", "Variables for the system unit kedge.service, such as passwords."),
    ("/var/lib/kedge", "service", "Data of the system unit kedge.service."),
    ("./kedge-data", "service", "Data directory of `kedge serve`, unless the settings name another."),
    ("~/.pgpass", "service", "Passwords of PostgreSQL databases."),
    ("~/.aws/credentials", "service", "Keys of the bucket, if no variable has them."),
]
