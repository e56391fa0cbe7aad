internal import KedgeHash
internal import KedgeModel

/// Keyed hashes (RFC 2104) over SHA-256, for messages of a few hundred bytes.
package enum HMACSHA256 {
    private static let blockByteCount = 64

    package static func code(of message: some Sequence<UInt8>, key: [UInt8]) -> [UInt8] {
        let short = key.count > blockByteCount ? SHA256Hasher.digest(of: key).bytes : key
        let padded = short + [UInt8](repeating: 0, count: blockByteCount - short.count)
        let inner = SHA256Hasher.digest(of: padded.map { $0 ^ 0x36 } + message)
        return SHA256Hasher.digest(of: padded.map { $0 ^ 0x5C } + inner.bytes).bytes
    }
}
