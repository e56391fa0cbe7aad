/// Where rows are kept.
package enum MetadataPlace: Hashable, Sendable {
    /// In a SQLite database in the data directory.
    case sqlite
    /// In a PostgreSQL database that nodes share. The address may hold a password.
    case postgres(url: String)

    package init?(text: String) {
        if text == "sqlite" {
            self = .sqlite
        } else if ["postgres://", "postgresql://"].contains(where: { text.hasPrefix($0) }) {
            self = .postgres(url: text)
        } else {
            return nil
        }
    }
}

// Settings are written to logs as a whole, and a password must not come along.
extension MetadataPlace: CustomStringConvertible, CustomDebugStringConvertible {
    package var description: String {
        switch self {
        case .sqlite: "sqlite"
        case .postgres(let url): StoreAddress.withoutPassword(url)
        }
    }

    package var debugDescription: String { description }
}

/// Where bytes are kept.
package enum BytesPlace: Hashable, Sendable {
    /// In files in the data directory.
    case disk
    /// In a bucket of an S3-compatible store that nodes share.
    case s3(url: String)

    package init?(text: String) {
        if text == "disk" {
            self = .disk
        } else if text.hasPrefix("s3://") {
            self = .s3(url: text)
        } else {
            return nil
        }
    }
}

/// Addresses of stores as they may be shown.
package enum StoreAddress {
    /// The address without the password in front of the host, and without one among the parameters.
    package static func withoutPassword(_ url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return url }
        var rest = String(url[scheme.upperBound...])
        // As libpq reads it: before the first slash everything up to the last "@" is the user and a password,
        // which may hold any other sign.
        if let at = rest.prefix(while: { $0 != "/" }).lastIndex(of: "@"),
            let colon = rest[..<at].firstIndex(of: ":")
        {
            rest.removeSubrange(colon..<at)
        }
        let halves = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let parameters = (halves.count > 1 ? halves[1].split(separator: "&") : [])
            .filter { !isSecret($0) }
        let query = parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&")
        return url[..<scheme.upperBound] + halves[0] + query
    }

    /// True for a parameter whose name, which may be percent-encoded, is that of a password.
    private static func isSecret(_ parameter: Substring) -> Bool {
        let name = parameter.prefix { $0 != "=" }
        guard !name.contains("%") else { return true }
        return name.lowercased().hasSuffix("password")
    }
}
