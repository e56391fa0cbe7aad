import KedgeModel
import Testing

@Suite struct QuantityTests {
    @Test(
        arguments: [
            ("0", 0), ("4194304", 4_194_304), ("9223372036854775807", .max),
            ("4M", 4_194_304), ("4m", 4_194_304), ("4MiB", 4_194_304), ("4 mib", 4_194_304),
            ("4MB", 4_000_000), ("1.5K", 1536), ("10GiB", 10_737_418_240),
            ("2T", 2_199_023_255_552),
            ("4.1GB", 4_100_000_000), ("16.4GB", 16_400_000_000), ("0.5K", 512), ("7B", 7),
            ("1kB", 1000),
        ] as [(String, Int64)])
    func `a size is a number with a unit or without`(text: String, byteCount: Int64) {
        #expect(Quantity.byteCount(text) == byteCount)
    }

    @Test(
        arguments: [
            "", "M", "-1", "+1", ".5M", "1.M", "1.2.3M", "4X", "4MM", "4 M B", "-4M", "+4M", "0.3",
            "1.3B",
            "8388608T", "99999999999999999999M", "4\u{41C}", "４M", "1e3", "nan", "inf", "0x10",
        ])
    func `other text is no size`(text: String) { #expect(Quantity.byteCount(text) == nil) }

    @Test(
        arguments: [
            ("90", 90), ("90s", 90), ("5m", 300), ("2h", 7200), ("7d", 604_800), ("7 d", 604_800),
        ] as [(String, Int64)])
    func `a time is a number with a unit or without`(text: String, seconds: Int64) {
        #expect(Quantity.seconds(text) == seconds)
    }

    @Test(arguments: [
        "", "d", "-1", "1.5h", "5M", "5min", "1h30m", "9223372036854775807d", "forever",
    ])
    func `other text is no time`(text: String) { #expect(Quantity.seconds(text) == nil) }
}
