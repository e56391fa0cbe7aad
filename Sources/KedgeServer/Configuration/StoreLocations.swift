/// The store for metadata rows.
package enum MetadataLocation: Hashable, Sendable {
    /// A SQLite database in the data directory.
    case sqlite
    /// A PostgreSQL database that nodes can share. The URL may contain a password.
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

// Settings are logged as a whole, so the description leaves the password out.
extension MetadataLocation: CustomStringConvertible, CustomDebugStringConvertible {
    package var description: String {
        switch self {
        case .sqlite: "sqlite"
        case .postgres(let url): StoreAddress.withoutPassword(url)
        }
    }

    package var debugDescription: String { description }
}

/// The store for bytes.
package enum BytesLocation: Hashable, Sendable {
    /// Files in the data directory.
    case disk
    /// A bucket of an S3-compatible store that nodes can share.
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

/// Removes secrets from store addresses.
package enum StoreAddress {
    /// The address without the password before the host and without secret parameters.
    package static func withoutPassword(_ url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return url }
        var rest = String(url[scheme.upperBound...])
        // As libpq does: before the first slash, everything up to the last "@" is the user and the
        // password. The password may contain any other character.
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

    /// Whether the parameter is a password. A percent-encoded name counts as one.
    private static func isSecret(_ parameter: Substring) -> Bool {
        let name = parameter.prefix { $0 != "=" }
        guard !name.contains("%") else { return true }
        return name.lowercased().hasSuffix("password")
    }
}
