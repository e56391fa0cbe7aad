internal import KedgeHash
internal import KedgeModel

/// A name and a value of a query, not yet encoded.
package struct QueryItem: Hashable, Sendable {
    let name: String
    let value: String

    package init(_ name: String, _ value: String = "") {
        self.name = name
        self.value = value
    }
}

/// The parts of a request that a signature covers.
package struct SignableRequest: Sendable {
    /// Replaces the digest of an unsigned body.
    package static let unsignedPayload = "UNSIGNED-PAYLOAD"
    /// The digest of an empty body.
    package static let emptyPayload = SHA256Hasher.digest(of: []).hex

    var method: String
    /// The `Host` field: with the port unless it is the scheme's default.
    var host: String
    /// Percent-encoded once.
    var path: String
    var query: [QueryItem] = []
    /// Signed fields besides `Host`.
    var fields: [(name: String, value: String)] = []
    /// 64 hexadecimal digits, or ``unsignedPayload``.
    var payloadHash: String

    package init(
        method: String,
        host: String,
        path: String,
        query: [QueryItem] = [],
        fields: [(name: String, value: String)] = [],
        payloadHash: String
    ) {
        self.method = method
        self.host = host
        self.path = path
        self.query = query
        self.fields = fields
        self.payloadHash = payloadHash
    }

    /// The query as it is signed and sent.
    var canonicalQuery: String {
        query
            .map { (PercentEncoding.encode($0.name), PercentEncoding.encode($0.value)) }
            .sorted { $0 < $1 }
            .map { "\($0.0)=\($0.1)" }
            .joined(separator: "&")
    }

    /// Names of the signed fields.
    var signedFields: String {
        canonicalFields.map(\.name).joined(separator: ";")
    }

    /// The text that is hashed and signed.
    var canonicalText: String {
        let lines = canonicalFields.map { "\($0.name):\($0.value)\n" }.joined()
        return [method, path, canonicalQuery, lines, signedFields, payloadHash]
            .joined(separator: "\n")
    }

    private var canonicalFields: [(name: String, value: String)] {
        (fields + [("host", host)])
            .map { ($0.name.lowercased(), Self.trimmed($0.value)) }
            .sorted { $0.0 < $1.0 }
    }

    /// Removes outer blanks and collapses inner ones.
    private static func trimmed(_ value: String) -> String {
        value.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    }
}
