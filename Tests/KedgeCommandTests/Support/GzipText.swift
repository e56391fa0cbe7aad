/// The gzip format (RFC 1952) without compression: the tests only need coded bytes.
enum GzipText {
    /// Encodes bytes.
    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var coded: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
        var start = 0
        repeat {
            // A stored block (RFC 1951 section 3.2.4) holds at most 65535 bytes.
            let count = min(65535, bytes.count - start)
            let isLast: UInt8 = start + count == bytes.count ? 1 : 0
            coded.append(isLast)
            coded += littleEndian(UInt16(count)) + littleEndian(~UInt16(count))
            coded += bytes[start..<start + count]
            start += count
        } while start < bytes.count
        return coded + littleEndian(checksum(bytes)) + littleEndian(UInt32(bytes.count))
    }

    private static func littleEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }

    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~UInt32(0)) { sum, byte in
            table[Int((sum ^ UInt32(byte)) & 0xFF)] ^ (sum >> 8)
        }
    }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { sum, _ in
            sum & 1 == 1 ? 0xEDB8_8320 ^ (sum >> 1) : sum >> 1
        }
    }
}
