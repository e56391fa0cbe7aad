internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeHash
internal import KedgeModel

extension IdempotencyKey {
    /// The request's idempotency key, sent as a structured-field string or as bare text; nil
    /// without one.
    ///
    /// - Throws: `BAD_REQUEST` unless it is 1 to 255 printable ASCII characters.
    static func text(of request: Request) throws -> String? {
        guard var key = request.headers[.idempotencyKey] else { return nil }
        if key.count >= 2, key.hasPrefix("\""), key.hasSuffix("\"") {
            key = String(key.dropFirst().dropLast())
        }
        guard (1...255).contains(key.utf8.count),
            key.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else {
            throw EngineError(
                .badRequest, "Idempotency-Key must be 1 to 255 visible ASCII characters.")
        }
        return key
    }

    /// - Parameter message: The content of the request. The key is valid only for equal content.
    init(_ text: String, for message: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let fingerprint = SHA256Hasher.digest(of: Array(try encoder.encode(message))).hex
        self.init(key: text, fingerprint: fingerprint)
    }
}
