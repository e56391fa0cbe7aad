import KedgeModel
import KedgeTesting
import Testing

struct WireIntegerTests {
    @Test(
        arguments: [
            ("0", 0), ("1", 1), ("00", 0), ("007", 7), ("2147483647", 2_147_483_647),
            ("2147483648", 2_147_483_648), ("9007199254740992", 9_007_199_254_740_992),
            ("9007199254740993", 9_007_199_254_740_993), ("9223372036854775807", Int64.max),
            ("000000000000000000009223372036854775807", Int64.max),
        ] as [(String, Int64)])
    func `decimal digits are read exactly up to the largest value`(text: String, value: Int64) {
        #expect(WireInteger.parse(text) == value)
    }

    @Test(arguments: [
        "", " ", "-1", "-0", "+1", "1e3", "1E3", "0x10", "1.0", "1,000", "1_000", " 1", "1 ", "\t1",
        "1\n", "1\u{0}", "9223372036854775808", "18446744073709551615", "18446744073709551616",
        "99999999999999999999999999999999", "٣", "۳", "３", "1٣", "𝟙", "½", "①", "Ⅷ", "1\u{301}",
        "\u{200E}1", "\u{FEFF}1", "NaN", "infinity", "null",
    ])
    func `text that is no decimal integer is refused without a trap`(text: String) {
        #expect(WireInteger.parse(text) == nil)
    }

    @Test func `a very long number is refused, but not very many leading zeros`() {
        #expect(WireInteger.parse(String(repeating: "9", count: 100_000)) == nil)
        #expect(WireInteger.parse(String(repeating: "0", count: 100_000) + "1") == 1)
    }

    @Test(arguments: 1...50 as ClosedRange<UInt64>)
    func `an integer reads back from its decimal text`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        // Covers all magnitudes: most random words are large.
        let value = Int64(generator.next() >> UInt64.random(in: 1...63, using: &generator))
        #expect(WireInteger.parse(String(value)) == value)
        let slice = "x\(value)y".dropFirst().dropLast()
        #expect(WireInteger.parse(slice) == value)
    }
}
