/// The cyclic redundancy check with Castagnoli's polynomial (RFC 3720, section 12.1).
///
/// Processes eight bytes at a time with eight tables ("slicing"), which needs no special
/// instructions.
struct CRC32C: Sendable {
    /// The inverted remainder, with the first bit lowest.
    private var remainder: UInt32 = .max

    /// The check value in network byte order, as sent on the wire.
    var bytes: [UInt8] { withUnsafeBytes(of: (~remainder).bigEndian) { Array($0) } }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        Self.tables.withUnsafeBufferPointer { tables in
            var crc = remainder
            var rest = bytes
            while rest.count >= 8 {
                let word = UInt64(littleEndian: rest.loadUnaligned(as: UInt64.self)) ^ UInt64(crc)
                crc = 0
                for position in 0..<8 {
                    let byte = Int((word >> (8 * UInt64(position))) & 0xFF)
                    crc ^= tables[(7 - position) * 256 + byte]
                }
                rest = UnsafeRawBufferPointer(rebasing: rest[8...])
            }
            for byte in rest { crc = Self.step(crc, byte, tables) }
            remainder = crc
        }
    }

    private static func step(
        _ crc: UInt32, _ byte: UInt8, _ tables: UnsafeBufferPointer<UInt32>
    ) -> UInt32 {
        crc >> 8 ^ tables[Int(UInt8(truncatingIfNeeded: crc) ^ byte)]
    }

    /// 0x1EDC6F41 with its bits reversed.
    private static let polynomial: UInt32 = 0x82F6_3B78

    /// Eight tables of 256 entries: the effect of a byte on the remainder when 0 to 7 bytes follow
    /// it.
    private static let tables: [UInt32] = {
        var tables = (0..<256).map { byte in
            (0..<8).reduce(UInt32(byte)) { crc, _ in
                crc & 1 == 0 ? crc >> 1 : crc >> 1 ^ polynomial
            }
        }
        for index in 256..<8 * 256 {
            let before = tables[index - 256]
            tables.append(before >> 8 ^ tables[Int(before & 0xFF)])
        }
        return tables
    }()
}
