internal import CCrypto

/// SHA-256 by libcrypto alone, with which the server's answers and speed are compared.
///
/// Not `KedgeHash`, whose way of hashing is among the things that are measured here.
struct LibcryptoDigest {
    private var context = SHA256_CTX()

    init() {
        SHA256_Init(&context)
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        SHA256_Update(&context, bytes.baseAddress, bytes.count)
    }

    /// The digest as lower-case hexadecimal digits; ends the computation.
    consuming func hexadecimal() -> String {
        var bytes = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        SHA256_Final(&bytes, &context)
        let digits = Array("0123456789abcdef".utf8)
        let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return String(decoding: text, as: UTF8.self)
    }
}
