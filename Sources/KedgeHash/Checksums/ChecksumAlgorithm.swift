/// A checksum that a client may send with its bytes; the raw value is its name on the wire.
///
/// All of them detect damage. Only SHA-256 and SHA-512 also withstand deliberate collisions. Blobs
/// are named by SHA-256 only, never by a checksum from a client in another algorithm.
package enum ChecksumAlgorithm: String, CaseIterable, Sendable {
    case sha1
    case sha256
    case sha512
    case md5
    case crc32c

    /// Size of a checksum in bytes.
    package var byteCount: Int {
        switch self {
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        case .md5: 16
        case .crc32c: 4
        }
    }
}
