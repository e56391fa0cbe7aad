/// A checksum that a client may send along with bytes; the raw value is its name on the wire.
///
/// All of them find damage. Only SHA-256 and SHA-512 also withstand somebody who makes other bytes with the
/// same checksum on purpose, so a file is never named by another one.
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
