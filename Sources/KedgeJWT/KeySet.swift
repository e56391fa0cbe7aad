internal import Foundation
internal import JWTKit
internal import KedgeIdentity

/// The keys of one issuer with which its tokens can be verified.
///
/// `JWTKeyCollection` falls back to a default key for an id that it does not know, and takes the
/// algorithm of a key that names none from the first token. So it gets no default, each pair of
/// key and algorithm has an id of our own there, and tokens are matched with keys here.
struct KeySet: Sendable {
    /// Maximum number of keys; further ones are left out.
    static let maxKeyCount = 100

    private struct Entry: Sendable {
        let keyID: String?
        let algorithms: Set<SignatureAlgorithm>
    }

    private let entries: [Entry]
    private let collection: JWTKeyCollection

    var isEmpty: Bool { entries.isEmpty }

    /// Leaves out keys for other purposes, secrets, and keys that cannot be used, such as RSA keys
    /// of fewer than 2048 bits.
    init(_ published: PublishedKeys) async {
        let collection = JWTKeyCollection()
        var entries: [Entry] = []
        for key in published.keys where key.verifiesSignatures {
            guard entries.count < Self.maxKeyCount else { break }
            var algorithms: Set<SignatureAlgorithm> = []
            for algorithm in key.algorithms {
                let identifier = Self.identifier(entries.count, algorithm)
                guard let parts = key.key(for: algorithm, identifier: identifier) else { continue }
                do {
                    _ = try await collection.add(jwk: parts, isDefault: false)
                    algorithms.insert(algorithm)
                } catch {
                    // The issuer's other keys still count.
                    continue
                }
            }
            guard !algorithms.isEmpty else { continue }
            entries.append(Entry(keyID: key.id, algorithms: algorithms))
        }
        self.entries = entries
        self.collection = collection
    }

    /// Checks the signature of a token.
    ///
    /// - Throws: `unknownKey`, `algorithmNotAccepted` or `wrongSignature`.
    func verify(_ token: UnverifiedToken) async throws(BearerRefusal) {
        let candidates = candidates(for: token)
        guard !candidates.isEmpty else { throw BearerRefusal.unknownKey }
        let index = candidates.first { entries[$0].algorithms.contains(token.algorithm) }
        guard let index else { throw BearerRefusal.algorithmNotAccepted }
        guard await isSigned(token, by: Self.identifier(index, token.algorithm)) else {
            throw BearerRefusal.wrongSignature
        }
    }

    /// The keys with the id of the token. Without an id, the only key.
    private func candidates(for token: UnverifiedToken) -> [Int] {
        guard let keyID = token.keyID else { return entries.count == 1 ? [0] : [] }
        return entries.indices.filter { entries[$0].keyID?.hasBytes(of: keyID) ?? false }
    }

    private func isSigned(
        _ token: UnverifiedToken, by identifier: JWKIdentifier
    ) async -> Bool {
        do {
            let key = try await collection.getKey(for: identifier, alg: token.algorithm.rawValue)
            return try key.verify(token.signature, signs: token.signedBytes)
        } catch {
            // A signature of a wrong length.
            return false
        }
    }

    private static func identifier(
        _ index: Int, _ algorithm: SignatureAlgorithm
    ) -> JWKIdentifier {
        JWKIdentifier(string: "\(index) \(algorithm.rawValue)")
    }
}
