/// The cyclic redundancy check of Ethernet and ZIP (ISO-HDLC), for texts with a checksum.
///
/// It detects each error of up to 32 bits in a row, so each mistyped character. It is no protection
/// against intent.
package enum CRC32 {
    /// 0x04C11DB7 with its bits reversed.
    private static let polynomial: UInt32 = 0xEDB8_8320

    /// Returns the check value. Goes bit by bit, which is fast enough for short texts.
    package static func checksum(of bytes: some Sequence<UInt8>) -> UInt32 {
        var remainder = UInt32.max
        for byte in bytes {
            remainder ^= UInt32(byte)
            for _ in 0..<8 {
                let shifted = remainder >> 1
                remainder = remainder & 1 == 0 ? shifted : shifted ^ polynomial
            }
        }
        return ~remainder
    }
}
