import CPostgres

/// A parsed metadata URL: parameters for libpq, and three settings of our own.
package struct ConnectionString: Sendable {
    /// Keywords and values for libpq, with our defaults. Contains the password; never logged.
    package let parameters: [(keyword: String, value: String)]
    /// Number of connections, each with its own thread.
    package let poolSize: Int
    /// Whether notifications arrive. They do not behind a pooler in transaction mode.
    package let listens: Bool
    /// Whether to accept a server that may lose acknowledged writes.
    package let allowsUnsafe: Bool

    package init(
        parameters: [(keyword: String, value: String)],
        poolSize: Int,
        listens: Bool,
        allowsUnsafe: Bool
    ) {
        self.parameters = parameters
        self.poolSize = poolSize
        self.listens = listens
        self.allowsUnsafe = allowsUnsafe
    }

    /// Reads `postgres://user:password@host:port/database?keyword=value…`.
    ///
    /// `pool_size` (1…200, default 8), `listen` and `allow_unsafe` (`on` or `off`) are our own.
    /// Every other keyword goes to libpq unchanged, including those for TLS.
    ///
    /// - Throws: `invalidURL`. The error does not contain the URL, which may hold a password.
    package init(_ url: String) throws(PostgresStoreError) {
        guard url.hasPrefix("postgres://") || url.hasPrefix("postgresql://") else {
            throw .invalidURL("it must start with postgres:// or postgresql://")
        }
        let halves = url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var items = halves.count == 2 ? halves[1].split(separator: "&").map(String.init) : []
        poolSize = try Self.poolSize(Self.take("pool_size", from: &items))
        listens = try Self.flag("listen", Self.take("listen", from: &items)) ?? true
        allowsUnsafe =
            try Self.flag("allow_unsafe", Self.take("allow_unsafe", from: &items)) ?? false
        let rest = items.isEmpty ? "" : "?" + items.joined(separator: "&")
        var parameters = try Self.parse(halves[0] + rest)
        for (keyword, value) in Self.defaults
        where !parameters.contains(where: { $0.keyword == keyword }) {
            parameters.append((keyword, value))
        }
        self.parameters = parameters
    }

    /// Defaults for libpq. They bound every wait on the network; libpq and the kernel wait without
    /// limit, or for hours.
    private static let defaults = [
        ("application_name", "kedge"), ("client_encoding", "UTF8"), ("connect_timeout", "5"),
        ("gssencmode", "disable"), ("keepalives_idle", "30"), ("keepalives_interval", "10"),
        ("keepalives_count", "3"), ("tcp_user_timeout", "10000"),
        // During a failover a name may lead to a standby, and a standby answers reads.
        ("target_session_attrs", "read-write"),
    ]

    /// Removes our own setting from the query and returns its value.
    private static func take(_ name: String, from items: inout [String]) -> String? {
        let prefix = name + "="
        defer { items.removeAll { $0.hasPrefix(prefix) } }
        return items.last { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
    }

    private static func poolSize(_ text: String?) throws(PostgresStoreError) -> Int {
        guard let text else { return 8 }
        guard let size = Int(text), (1...200).contains(size) else {
            throw .invalidURL("pool_size must be a number from 1 to 200")
        }
        return size
    }

    private static func flag(_ name: String, _ text: String?) throws(PostgresStoreError) -> Bool? {
        switch text {
        case nil: nil
        case "on": true
        case "off": false
        default: throw .invalidURL("\(name) must be on or off")
        }
    }

    private static func parse(
        _ url: String
    ) throws(PostgresStoreError) -> [(keyword: String, value: String)] {
        // libpq's message is not requested: it quotes the URL.
        guard let options = unsafe PQconninfoParse(url, nil) else {
            throw .invalidURL("libpq cannot parse it")
        }
        defer { unsafe PQconninfoFree(options) }
        var parameters: [(String, String)] = []
        var option = unsafe options
        while let keyword = unsafe option.pointee.keyword {
            if let value = unsafe option.pointee.val {
                parameters.append(unsafe (String(cString: keyword), String(cString: value)))
            }
            unsafe option += 1
        }
        return parameters
    }
}
