internal import Foundation
internal import KedgeIdentity
internal import KedgeSecrets

/// The parts of a JSON Web Token (RFC 7519) in compact form, before its signature is checked.
struct UnverifiedToken: Sendable {
    static let maxByteCount = 8 << 10

    let algorithm: SignatureAlgorithm
    let keyID: String?
    let claims: [String: ClaimValue]
    /// The bytes that the signature covers.
    let signedBytes: [UInt8]
    let signature: [UInt8]

    /// Members of a header that name keys, which only the issuer may do, or extensions.
    private static let refusedMembers: Set = ["crit", "jku", "jwk", "x5c", "x5u"]
    /// Kinds of tokens that prove who sends a request. Others, such as those that announce the end
    /// of a login, have similar claims (RFC 8725 section 3.11).
    private static let kinds: Set = ["jwt", "at+jwt", "application/jwt", "application/at+jwt"]

    /// Checks everything that needs no key.
    init(_ text: String) throws(BearerRefusal) {
        guard text.utf8.count <= Self.maxByteCount else { throw BearerRefusal.tooLong }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = Self.members(parts[0]),
            let claims = Self.members(parts[1]), let signature = Base64URL.decode(parts[2])
        else { throw BearerRefusal.malformed }
        // Checked first, so that `none` and shared secrets have their own sentence.
        guard case .text(let name)? = header["alg"],
            let algorithm = SignatureAlgorithm(rawValue: name)
        else { throw BearerRefusal.algorithmNotAccepted }
        try Self.check(header)
        self.algorithm = algorithm
        keyID = header["kid"]?.texts.first
        self.claims = claims
        signedBytes = Array("\(parts[0]).\(parts[1])".utf8)
        self.signature = signature
    }

    private static func check(_ header: [String: ClaimValue]) throws(BearerRefusal) {
        guard refusedMembers.isDisjoint(with: header.keys) else {
            throw BearerRefusal.headerNotAccepted
        }
        if let keyID = header["kid"] {
            guard case .text = keyID else { throw BearerRefusal.malformed }
        }
        if let kind = header["typ"] {
            guard case .text(let name) = kind, kinds.contains(name.lowercased()) else {
                throw BearerRefusal.headerNotAccepted
            }
        }
    }

    private static func members(_ part: Substring) -> [String: ClaimValue]? {
        guard let json = Base64URL.decode(part) else { return nil }
        // Any other text is malformed, for whatever reason.
        return try? JSONDecoder().decode([String: ClaimValue].self, from: Data(json))
    }
}
