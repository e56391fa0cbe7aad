internal import CCrypto

/// SHA-256 by libcrypto alone, for comparison with the server's answers and speed.
///
/// This is not `KedgeHash`, whose speed is itself measured here.
struct LibcryptoDigest {
    private var context = SHA256_CTX()

    init() {
        SHA256_Init(&context)
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        SHA256_Update(&context, bytes.baseAddress, bytes.count)
    }

    /// Ends the computation, and returns the digest as lower-case hexadecimal digits.
    consuming func hexadecimal() -> String {
        var bytes = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        SHA256_Final(&bytes, &context)
        let digits = Array("0123456789abcdef".utf8)
        let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }
}
