/// Derives keys from a key with SHA-256 (RFC 5869).
package enum HKDFSHA256 {
    /// Maximum number of derived bytes: 255 codes.
    package static let maxByteCount = 255 * HMACSHA256.byteCount

    /// Returns the derived bytes.
    ///
    /// - Parameters:
    ///   - byteCount: At most ``maxByteCount``.
    ///   - input: The key to derive from. Not a password: the derivation is fast.
    ///   - salt: Without one, a block of zeros counts, which is how HMAC extends an empty key.
    ///   - info: The purpose of the derived bytes. Different purposes give independent bytes.
    package static func derive(
        _ byteCount: Int, from input: [UInt8], salt: [UInt8] = [], info: [UInt8]
    ) -> [UInt8] {
        precondition((0...maxByteCount).contains(byteCount), "HKDF derives at most 255 codes")
        let expansion = HMACSHA256(key: HMACSHA256(key: salt).code(of: input))
        var output: [UInt8] = []
        var block: [UInt8] = []
        var counter: UInt8 = 0
        while output.count < byteCount {
            counter += 1
            block = expansion.code(of: block + info + [counter])
            output += block
        }
        return Array(output.prefix(byteCount))
    }
}
