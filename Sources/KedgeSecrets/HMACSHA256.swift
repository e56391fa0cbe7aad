internal import KedgeHash
internal import KedgeModel

/// A message authentication code with SHA-256 (RFC 2104) and one key.
///
/// A value that has hashed its key already, so a code of a short message costs two blocks.
package struct HMACSHA256: Sendable {
    /// Number of bytes in a code.
    package static let byteCount = 32

    /// Number of bytes in a block of SHA-256.
    private static let blockByteCount = 64

    private let inner: SHA256Hasher
    private let outer: SHA256Hasher

    /// - Parameter key: Of any length. A key of more than 64 bytes counts as its digest.
    package init(key: [UInt8]) {
        var block = key
        if block.count > Self.blockByteCount { block = SHA256Hasher.digest(of: key).bytes }
        block += [UInt8](repeating: 0, count: Self.blockByteCount - block.count)
        inner = Self.hasher(of: block, combinedWith: 0x36)
        outer = Self.hasher(of: block, combinedWith: 0x5C)
    }

    /// Returns the code of the message, 32 bytes.
    package func code(of message: [UInt8]) -> [UInt8] {
        var innerHasher = inner
        innerHasher.update(message)
        var outerHasher = outer
        outerHasher.update(innerHasher.digest().bytes)
        return outerHasher.digest().bytes
    }

    private static func hasher(of block: [UInt8], combinedWith padding: UInt8) -> SHA256Hasher {
        let bytes: [UInt8] = block.map { $0 ^ padding }
        var hasher = SHA256Hasher()
        hasher.update(bytes)
        return hasher
    }
}
