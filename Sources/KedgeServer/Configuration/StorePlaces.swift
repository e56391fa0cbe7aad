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
        let rest = url[scheme.upperBound...]
        let halves = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var address = String(halves[0])
        // A password may hold any sign but a slash; the host begins after the last one that ends it.
        let authority = address.prefix { $0 != "/" }
        if let at = authority.lastIndex(of: "@"),
            let colon = authority[..<at].firstIndex(of: ":")
        {
            address.removeSubrange(colon..<at)
        }
        let parameters = (halves.count > 1 ? halves[1].split(separator: "&") : [])
            .filter { !$0.hasPrefix("password=") && !$0.hasPrefix("sslpassword=") }
        let query = parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&")
        return url[..<scheme.upperBound] + address + query
    }
}
