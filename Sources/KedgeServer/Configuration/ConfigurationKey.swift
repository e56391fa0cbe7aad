/// A setting of the server. One table defines flags, environment variables, file keys, defaults and
/// help.
///
/// The key `limits.maxFileSize` is the flag `--limits-max-file-size`, the variable
/// `KEDGE_LIMITS_MAX_FILE_SIZE`, and in YAML the member `maxFileSize` of `limits`. A flag takes
/// precedence over the environment, the environment over the file, and the file over the default.
package enum ConfigurationKey: String, CaseIterable, Sendable {
    case host = "host"
    case port = "port"
    case allowedHosts = "allowedHosts"
    case allowAnyHost = "allowAnyHost"
    case publicAddress = "publicAddress"
    case trustedProxies = "trustedProxies"
    case data = "data"
    case metadata = "metadata"
    case bytes = "bytes"
    case durability = "durability"
    case hashPath = "hash.path"
    case logLevel = "log.level"
    case logFormat = "log.format"
    case logAudit = "log.audit"
    case maxFileSize = "limits.maxFileSize"
    case minChunkSize = "limits.minChunkSize"
    case maxChunkSize = "limits.maxChunkSize"
    case defaultChunkSize = "limits.defaultChunkSize"
    case maxConcurrentWrites = "limits.maxConcurrentWrites"
    case maxConnections = "limits.maxConnections"
    case maxOpenSessions = "limits.maxOpenSessions"
    case sessionLifetime = "session.lifetimeSeconds"
    case emptySessionLifetime = "session.emptyLifetimeSeconds"
    case sessionGrace = "session.graceSeconds"
    case idleTimeout = "timeouts.idleSeconds"
    case minBodyRate = "timeouts.minBodyBytesPerSecond"
    case minAnswerRate = "timeouts.minAnswerBytesPerSecond"
    case drainTimeout = "shutdown.drainSeconds"
    case storageReserve = "storage.reserveBytes"
    case storageAllow = "storage.allow"
    case sweepInterval = "sweep.intervalSeconds"
    case scrubNewFilesWithin = "scrub.newFilesWithin"
    case scrubPeriod = "scrub.period"
    case scrubRate = "scrub.bytesPerSecond"
    case tusPath = "tus.path"
    case uploadTargets = "uploads.targets"
    case interim = "resumableUpload.interim"
    case corsOrigins = "cors.allowedOrigins"
    case metricsListen = "metrics.listen"
    case identityMode = "identity.mode"
    case identityPlainHTTP = "identity.plainHTTP"
    case tlsCertificate = "tls.certificate"
    case tlsKey = "tls.key"
    case tlsMinimum = "tls.minimum"
    case masterKeyFile = "secrets.masterKeyFile"
    case quotaStoredBytes = "quota.storedBytes"
    case quotaOpenSessions = "quota.openSessions"
    case quotaFileBytes = "quota.fileBytes"
    case oidcIssuers = "oidc.issuers"
    case oidcAudience = "oidc.audience"
    case oidcOwnerClaim = "oidc.ownerClaim"
    case oidcScopeClaim = "oidc.scopeClaim"
    case oidcDefaultScopes = "oidc.defaultScopes"
    case oidcAdminClaim = "oidc.adminClaim"
    case proxyIdentityHeader = "proxy.identityHeader"
    case proxySecretFile = "proxy.secretFile"
    case proxyScopes = "proxy.scopes"
    case rateRequests = "rate.requestsPerSecond"
    case rateCreates = "rate.createsPerMinute"
    case rateFailedAuthentications = "rate.failedAuthenticationsPerSecond"
    case linksInLocation = "links.inLocation"
    case linksMaxLifetime = "links.maxLifetime"

    /// The value of a setting that nothing sets.
    package var defaultValue: String {
        switch self {
        case .host: "127.0.0.1"
        case .port: "8080"
        case .allowedHosts: ""
        case .allowAnyHost: "off"
        case .publicAddress: ""
        case .trustedProxies: ""
        case .data: "./kedge-data"
        case .metadata: "sqlite"
        case .bytes: "disk"
        case .durability: "on"
        case .hashPath: "auto"
        case .logLevel: "info"
        case .logFormat: "text"
        case .logAudit: "off"
        case .maxFileSize: "1099511627776"
        case .minChunkSize: "262144"
        case .maxChunkSize: "67108864"
        case .defaultChunkSize: "4194304"
        case .maxConcurrentWrites: "64"
        case .maxConnections: "auto"
        case .maxOpenSessions: "10000"
        case .sessionLifetime: "604800"
        case .emptySessionLifetime: "3600"
        case .sessionGrace: "86400"
        case .idleTimeout: "60"
        case .minBodyRate: "1024"
        case .minAnswerRate: "4096"
        case .drainTimeout: "10"
        case .storageReserve: "67108864"
        case .storageAllow: ""
        case .sweepInterval: "60"
        case .scrubNewFilesWithin: "3600"
        case .scrubPeriod: "2592000"
        case .scrubRate: "67108864"
        case .tusPath: "/tus/"
        case .uploadTargets: ""
        case .interim: "auto"
        case .corsOrigins: ""
        case .metricsListen: ""
        case .identityMode: "none"
        case .identityPlainHTTP: "off"
        case .tlsCertificate: ""
        case .tlsKey: ""
        case .tlsMinimum: "1.2"
        case .masterKeyFile: ""
        case .quotaStoredBytes: "0"
        case .quotaOpenSessions: "0"
        case .quotaFileBytes: "0"
        case .oidcIssuers: ""
        case .oidcAudience: ""
        case .oidcOwnerClaim: ""
        case .oidcScopeClaim: "scope"
        case .oidcDefaultScopes: ""
        case .oidcAdminClaim: ""
        case .proxyIdentityHeader: ""
        case .proxySecretFile: ""
        case .proxyScopes: "user"
        case .rateRequests: "0"
        case .rateCreates: "0"
        case .rateFailedAuthentications: "10"
        case .linksInLocation: "auto"
        case .linksMaxLifetime: "2592000"
        }
    }

    /// A description of the setting, for help and for the printed configuration.
    package var summary: String {
        switch self {
        case .host:
            "Address to listen on; others than loopback need identity.mode, and tls.certificate or "
                + "identity.plainHTTP."
        case .port: "Port to listen on; 0 picks a free one."
        case .allowedHosts:
            "Host names to serve besides loopback, comma-separated; * for all, with allowAnyHost."
        case .allowAnyHost:
            "on permits allowedHosts *, which gives any page in a local browser all rights."
        case .publicAddress:
            "Address of the service, such as https://files.example; empty: taken from each request."
        case .trustedProxies:
            "Addresses or networks of proxies whose X-Forwarded-For is trusted, comma-separated."
        case .data: "Directory of the embedded database and files."
        case .metadata: "Where to keep rows: sqlite (in the data directory), or postgresql://…"
        case .bytes: "Where to keep bytes: disk (in the data directory), or s3://bucket/prefix?…"
        case .durability:
            "on; or off, for measuring only: acknowledged data can be lost in a power cut."
        case .hashPath:
            "Instructions for SHA-256: auto for the fastest, or sha-ni, avx512, avx2, armv8, "
                + "libcrypto."
        case .logLevel: "trace, debug, info, notice, warning, error or critical."
        case .logFormat: "text, or json for one object per line."
        case .logAudit:
            "Where to write the audit log: off, stderr, or the path of a file, which has a slash "
                + "or a dot, such as audit.jsonl or /var/log/kedge/audit.jsonl."
        case .maxFileSize: "Largest file accepted, in bytes."
        case .minChunkSize: "Smallest chunk size a session may have, in bytes."
        case .maxChunkSize: "Largest chunk size a session may have, in bytes."
        case .defaultChunkSize: "Chunk size of sessions that request none, in bytes."
        case .maxConcurrentWrites: "Request bodies written at once; others are answered BUSY."
        case .maxConnections:
            "Open connections, give or take three; auto for as many as file descriptors permit, at "
                + "most 10000. Others wait to be accepted."
        case .maxOpenSessions:
            "Open uploads; the oldest ones without a byte make room for new ones."
        case .emptySessionLifetime: "Seconds after which a session without a byte expires."
        case .sessionLifetime: "Seconds after its last activity when a session expires."
        case .sessionGrace: "Seconds for which an expired session's bytes can be adopted."
        case .idleTimeout: "Seconds without a byte after which a connection is closed."
        case .minBodyRate: "Bytes per second below which a request body is cut off."
        case .minAnswerRate:
            "Bytes per second below which readers are cut off if connections are scarce; 0: never."
        case .drainTimeout: "Seconds for request bodies to finish when the server stops."
        case .storageReserve: "Bytes of disk space that uploads never use."
        case .storageAllow:
            "Data directories to accept that are refused by default, comma-separated: shared "
                + "(group or others may write), network (on a network file system)."
        case .sweepInterval: "Seconds between two rounds of maintenance."
        case .scrubNewFilesWithin:
            "Seconds within which a new file should be read back; a longer delay is logged."
        case .scrubPeriod: "Seconds within which every file is read back again; 0 for never."
        case .scrubRate:
            "Bytes read back per second, at most; an eighth of it while transfers are under way."
        case .tusPath: "Path of the tus endpoint, such as /tus/, and not below /files or /uploads."
        case .uploadTargets: "Paths that accept uploads as POST /files does, comma-separated."
        case .interim:
            "104 responses to IETF uploads: always, never, or auto for none behind a visible "
                + "proxy; nginx and Varnish take a 104 for the final response."
        case .corsOrigins:
            "Origins of pages with all rights, including listing and deleting, comma-separated, "
                + "such as https://app.example; * for every page."
        case .metricsListen:
            "Loopback address and port for GET /metrics without credentials, such as "
                + "127.0.0.1:9464; empty for none."
        case .identityMode:
            "none: every client is the same anonymous owner, on loopback only; or tokens: each "
                + "request needs a credential, such as an API token."
        case .identityPlainHTTP:
            "on permits to listen beyond loopback without TLS, with identity.mode tokens and a "
                + "proxy in trustedProxies that ends TLS."
        case .tlsCertificate:
            "PEM file of the server's certificate, followed by those of its authorities; empty for "
                + "HTTP without TLS."
        case .tlsKey:
            "PEM file of the certificate's private key, which only the user of the service may "
                + "access."
        case .tlsMinimum: "Oldest version of TLS to accept: 1.2 or 1.3."
        case .masterKeyFile:
            "File with the master keys of links, a key a line; empty: master.key in the data "
                + "directory. A fleet must name one."
        case .quotaStoredBytes:
            "Bytes that an owner may have in files and unfinished uploads together; 0: no limit."
        case .quotaOpenSessions: "Unfinished uploads that an owner may have; 0: no limit."
        case .quotaFileBytes: "Largest file of an owner, in bytes; 0: limits.maxFileSize."
        case .oidcIssuers:
            "Addresses of OpenID providers whose JSON Web Tokens are accepted, comma-separated."
        case .oidcAudience: "Audience that such a token must have; needed with oidc.issuers."
        case .oidcOwnerClaim:
            "Claim with the owner; empty for oidc:, the host of the issuer, and sub."
        case .oidcScopeClaim: "Claim with the scopes, separated by spaces or as a list."
        case .oidcDefaultScopes:
            "Scopes of a token that names none, comma-separated, such as user."
        case .oidcAdminClaim:
            "Claim and value that give every scope, such as groups=kedge-admins; empty for none."
        case .proxyIdentityHeader:
            "Request field in which a proxy in trustedProxies names the owner, such as "
                + "X-Forwarded-User; empty for none."
        case .proxySecretFile:
            "File, readable by its owner only, with the secret that the proxy sends as "
                + "X-Kedge-Proxy-Secret; empty for none."
        case .proxyScopes:
            "Scopes of the owners that the proxy names, comma-separated, such as user or reader."
        case .rateRequests:
            "Requests of one owner per second, on each node; 0 for no limit."
        case .rateCreates:
            "New uploads of one owner per minute, on each node; 0 for no limit."
        case .rateFailedAuthentications:
            "Refused credentials per second from one IPv4 address or IPv6 /64 network, five times "
                + "as many at once; 0 for no limit."
        case .linksInLocation:
            "Whether a new upload's address has a link with which it goes on: always, never, or "
                + "auto for uploads by link or by a token of an OpenID provider."
        case .linksMaxLifetime: "Seconds for which a link is valid, at most."
        }
    }

    /// Name of the flag, without leading dashes.
    package var flagName: String { words.joined(separator: "-") }

    /// Name of the environment variable.
    package var environmentName: String {
        "KEDGE_" + words.map { $0.uppercased() }.joined(separator: "_")
    }

    private var words: [String] {
        var words: [String] = [""]
        var isAfterUppercase = false
        for character in rawValue {
            if character == "." {
                words.append("")
            } else if character.isUppercase, !isAfterUppercase {
                words.append(character.lowercased())
            } else {
                // Further letters of an abbreviation, as in `plainHTTP`, belong to its word.
                words[words.count - 1].append(character.lowercased())
            }
            isAfterUppercase = character.isUppercase
        }
        return words
    }
}
