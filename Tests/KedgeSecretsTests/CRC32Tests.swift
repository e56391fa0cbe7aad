import KedgeSecrets
import Testing

struct CRC32Tests {
    /// The check value of the catalogue of parametrised CRC algorithms, and values of zlib.
    @Test(
        arguments: [
            ("123456789", 0xCBF4_3926), ("", 0), ("a", 0xE8B7_BE43),
            ("The quick brown fox jumps over the lazy dog", 0x414F_A339),
        ] as [(String, UInt32)])
    func `published texts have their check values`(text: String, value: UInt32) {
        #expect(CRC32.checksum(of: text.utf8) == value)
    }
}
