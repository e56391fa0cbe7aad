internal import CCrypto
internal import KedgeModel

/// A running checksum of any ``ChecksumAlgorithm``.
///
/// A value: copies continue independently. So it uses libcrypto's plain structures: an `EVP_MD_CTX`
/// (EVP_DigestInit(3)) is a handle, and every buffer would need a copy of it on the heap. An update
/// blocks; large buffers belong on a thread pool.
package struct ChecksumHasher: Sendable {
    private enum State: Sendable {
        case sha1(SHA_CTX)
        case sha256(SHA256Hasher)
        case sha512(SHA512_CTX)
        case md5(MD5_CTX)
        case crc32c(CRC32C)
    }

    package let algorithm: ChecksumAlgorithm
    private var state: State

    /// A hasher that has seen no bytes.
    package init(_ algorithm: ChecksumAlgorithm) {
        self.algorithm = algorithm
        switch algorithm {
        case .sha1:
            var context = SHA_CTX()
            SHA1_Init(&context)
            state = .sha1(context)
        case .sha256:
            state = .sha256(SHA256Hasher())
        case .sha512:
            var context = SHA512_CTX()
            SHA512_Init(&context)
            state = .sha512(context)
        case .md5:
            var context = MD5_CTX()
            MD5_Init(&context)
            state = .md5(context)
        case .crc32c:
            state = .crc32c(CRC32C())
        }
    }

    /// Hashes more bytes.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
        switch state {
        case .sha1(var context):
            SHA1_Update(&context, base, bytes.count)
            state = .sha1(context)
        case .sha256(var hasher):
            hasher.update(bytes)
            state = .sha256(hasher)
        case .sha512(var context):
            SHA512_Update(&context, base, bytes.count)
            state = .sha512(context)
        case .md5(var context):
            MD5_Update(&context, base, bytes.count)
            state = .md5(context)
        case .crc32c(var crc):
            crc.update(bytes)
            state = .crc32c(crc)
        }
    }

    /// Hashes more bytes.
    package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    /// Returns the checksum of the bytes so far, as sent on the wire; the hasher can continue.
    package func checksum() -> [UInt8] {
        switch state {
        case .sha1(var context): finished { SHA1_Final($0, &context) }
        case .sha256(let hasher): hasher.digest().bytes
        case .sha512(var context): finished { SHA512_Final($0, &context) }
        case .md5(var context): finished { MD5_Final($0, &context) }
        case .crc32c(let crc): crc.bytes
        }
    }

    private func finished(_ finish: (UnsafeMutablePointer<UInt8>?) -> Int32) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: algorithm.byteCount) { buffer, count in
            _ = finish(buffer.baseAddress)
            count = algorithm.byteCount
        }
    }
}
