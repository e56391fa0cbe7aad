internal import JWTKit

/// A key of an issuer as its document has it (RFC 7517). Secret parts are not read.
struct PublishedKey: Sendable {
    let type: String
    let id: String?
    private let use: String?
    private let operations: [String]?
    private let algorithm: String?
    private let curve: String?
    private let modulus: String?
    private let exponent: String?
    private let x: String?
    private let y: String?

    /// Whether the issuer permits that the key verifies signatures.
    var verifiesSignatures: Bool {
        (use ?? "sig") == "sig" && (operations?.contains("verify") ?? true)
    }

    /// The algorithms of the key: the one that it names, or all that its type permits. Empty for
    /// secrets and for unknown types.
    var algorithms: [SignatureAlgorithm] {
        SignatureAlgorithm.allCases.filter { candidate in
            candidate.keyType == type && (candidate.curve == nil || candidate.curve == curve)
                && (algorithm == nil || algorithm == candidate.rawValue)
        }
    }

    /// Returns the key for one algorithm; nil if a part is missing.
    func key(for algorithm: SignatureAlgorithm, identifier: JWKIdentifier) -> JWK? {
        let name = JWK.Algorithm(rawValue: algorithm.rawValue)
        switch algorithm {
        case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512:
            guard let modulus, let exponent else { return nil }
            return .rsa(name, identifier: identifier, modulus: modulus, exponent: exponent)
        case .es256, .es384, .es512:
            guard let x, let y, let curve else { return nil }
            return .ecdsa(
                name, identifier: identifier, x: x, y: y, curve: ECDSACurve(rawValue: curve))
        case .edDSA:
            guard let x, let curve else { return nil }
            return .octetKeyPair(
                name, identifier: identifier, x: x, y: nil, curve: EdDSACurve(rawValue: curve))
        }
    }
}

extension PublishedKey: Decodable {
    private enum CodingKeys: String, CodingKey {
        case type = "kty"
        case id = "kid"
        case use
        case operations = "key_ops"
        case algorithm = "alg"
        case curve = "crv"
        case modulus = "n"
        case exponent = "e"
        case x
        case y
    }
}
