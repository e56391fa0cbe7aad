/// A checksum that a client may send with its bytes; the raw value is its name on the wire.
///
/// All of them detect damage. Only SHA-256 and SHA-512 also withstand deliberate collisions, so a
/// file is never named by another one.
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
