import KedgeModel
import KedgeSecrets
import Testing

/// The vectors of RFC 5869 for SHA-256.
struct HKDFSHA256Tests {
    @Test func `the basic vector of RFC 5869 is derived`() {
        let output = HKDFSHA256.derive(
            42, from: [UInt8](repeating: 0x0B, count: 22), salt: Array(0...12),
            info: Array(0xF0...0xF9))
        #expect(
            Hex.encode(output)
                == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
                + "34007208d5b887185865")
    }

    @Test func `the vector of RFC 5869 with long inputs is derived`() {
        let output = HKDFSHA256.derive(
            82, from: Array(0x00...0x4F), salt: Array(0x60...0xAF), info: Array(0xB0...0xFF))
        #expect(
            Hex.encode(output)
                == "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
                + "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
                + "cc30c58179ec3e87c14c01d5c1f3434f1d87")
    }

    @Test func `the vector of RFC 5869 without salt and purpose is derived`() {
        let output = HKDFSHA256.derive(42, from: [UInt8](repeating: 0x0B, count: 22), info: [])
        #expect(
            Hex.encode(output)
                == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
                + "9d201395faa4b61a96c8")
    }

    @Test(arguments: [0, 1, 31, 32, 33, 64, 65, HKDFSHA256.maxByteCount])
    func `any number of bytes can be derived, and fewer are their prefix`(count: Int) {
        let longest = HKDFSHA256.derive(HKDFSHA256.maxByteCount, from: [1], info: [2])
        let output = HKDFSHA256.derive(count, from: [1], info: [2])
        #expect(output == Array(longest.prefix(count)))
    }
}
