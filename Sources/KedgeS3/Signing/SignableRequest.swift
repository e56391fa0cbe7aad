internal import KedgeHash
internal import KedgeModel

/// A name and a value of a query, not encoded yet.
struct QueryItem: Hashable, Sendable {
    let name: String
    let value: String

    init(_ name: String, _ value: String = "") {
        self.name = name
        self.value = value
    }
}

/// What of a request a signature covers.
struct SignableRequest: Sendable {
    /// In place of the digest of a body that is not covered.
    static let unsignedPayload = "UNSIGNED-PAYLOAD"
    /// The digest of no bytes.
    static let emptyPayload = SHA256Hasher.digest(of: []).hex

    var method: String
    /// As in the `Host` field: with the port unless it is the scheme's own.
    var host: String
    /// Percent-encoded, once.
    var path: String
    var query: [QueryItem] = []
    /// Fields beside `Host` that are covered.
    var fields: [(name: String, value: String)] = []
    /// 64 hexadecimal digits, or ``unsignedPayload``.
    var payloadHash: String

    /// The query as it is signed and sent.
    var canonicalQuery: String {
        query
            .map { (PercentEncoding.encode($0.name), PercentEncoding.encode($0.value)) }
            .sorted { $0 < $1 }
            .map { "\($0.0)=\($0.1)" }
            .joined(separator: "&")
    }

    /// Names of the fields that are covered.
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

    /// Without blanks around, and with one in place of several.
    private static func trimmed(_ value: String) -> String {
        value.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    }
}
