import KedgeSecrets

/// Writes JSON and tokens piece by piece, so that a test can write wrong ones.
enum TokenText {
    /// Returns an object of members whose values are JSON already.
    static func object(_ members: [String: String]) -> String {
        let pairs = members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
        return "{\(pairs.joined(separator: ","))}"
    }

    static func quoted(_ text: String) -> String { "\"\(text)\"" }

    /// Returns the bytes that are signed.
    static func signed(_ header: String, _ claims: String) -> String {
        Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
    }

    static func token(_ signed: String, _ signature: [UInt8]) -> String {
        signed + "." + Base64URL.encode(signature)
    }
}
