internal import KedgeHash
package import KedgeModel
internal import KedgeSecrets

/// A credential that the service issues: `kdg_<id>_<secret>_<checksum>`.
///
/// Scanners for leaked secrets find it by the prefix and the checksum. The checksum also separates
/// a typing error from a token that was revoked.
package struct APIToken: Sendable {
    /// The beginning of each token, by which it differs from other credentials.
    package static let prefix = "kdg_"

    /// Number of random bytes in the secret.
    private static let secretByteCount = 32
    private static let checksumWidth = 6
    private static let separator = UInt8(ascii: "_")

    // The secret may contain the separator, so places in the text decide.
    private static let idRange = 4..<16
    private static let secretRange = 17..<60
    private static let checksumRange = 61..<67

    package let id: TokenID
    private let secret: [UInt8]

    private init(id: TokenID, secret: [UInt8]) {
        self.id = id
        self.secret = secret
    }

    /// Makes a new token.
    package static func generate() -> APIToken {
        APIToken(id: .random(), secret: SecureRandom.bytes(secretByteCount))
    }

    /// Parses the text of a token.
    package static func parse(_ text: some StringProtocol) throws(APITokenError) -> APIToken {
        let bytes = Array(text.utf8)
        guard bytes.count == checksumRange.upperBound, bytes.starts(with: prefix.utf8),
            bytes[idRange.upperBound] == separator, bytes[secretRange.upperBound] == separator
        else { throw APITokenError.malformed }
        let body = bytes[..<secretRange.upperBound]
        guard bytes[checksumRange].elementsEqual(checksum(of: body).utf8) else {
            throw APITokenError.checksumMismatch
        }
        guard let id = TokenID(String(decoding: bytes[idRange], as: UTF8.self)),
            let secret = Base64URL.decode(String(decoding: bytes[secretRange], as: UTF8.self)),
            secret.count == secretByteCount
        else { throw APITokenError.malformed }
        return APIToken(id: id, secret: secret)
    }

    /// The complete text, which is shown once, when the token is made.
    package var text: String {
        let body = "\(Self.prefix)\(id)_\(Base64URL.encode(secret))"
        return "\(body)_\(Self.checksum(of: body.utf8))"
    }

    /// The SHA-256 of the secret, which the service stores.
    ///
    /// A fast hash is right here. Slow hashes protect passwords, which can be guessed; a secret of
    /// 256 random bits cannot.
    package var secretDigest: SHA256Digest { SHA256Hasher.digest(of: secret) }

    private static func checksum(of body: some Sequence<UInt8>) -> String {
        Base62.encode(CRC32.checksum(of: body), width: checksumWidth)
    }
}

extension APIToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The token without its secret.
    package var description: String { "\(Self.prefix)\(id)_…" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A reason why a text is no API token.
package enum APITokenError: Error, Hashable, Sendable {
    /// The text does not have the form of a token.
    case malformed
    /// The text has the form, but another checksum: a typing error.
    case checksumMismatch
}
