import KedgeModel
import KedgeTesting
import Testing

struct TimestampTests {
    private static let known: [(Int64, String)] = [
        (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (951_868_799_999, "2000-02-29T23:59:59.999Z"),
        (951_868_800_000, "2000-03-01T00:00:00.000Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (4_107_456_000_000, "2100-02-28T00:00:00.000Z"),
        (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
        (1_763_688_608_000, "2025-11-21T01:30:08.000Z"),
        (2_147_483_648_000, "2038-01-19T03:14:08.000Z"),
        (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ]

    @Test(arguments: known)
    func `known times are written and read`(milliseconds: Int64, text: String) {
        let time = Timestamp(millisecondsSinceEpoch: milliseconds)
        #expect(time.description == text)
        #expect(Timestamp(text) == time)
    }

    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.5Z", 500),
            ("1970-01-01T00:00:00.25Z", 250), ("1970-01-01T00:00:00.1239Z", 123),
            ("1970-01-01T00:00:00.000000001Z", 0),
        ] as [(String, Int64)])
    func `a second's fraction of any length is read down to milliseconds`(
        text: String, milliseconds: Int64
    ) {
        #expect(Timestamp(text)?.millisecondsSinceEpoch == milliseconds)
    }

    @Test(arguments: [
        "", "Z", "now", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01T00:00:00.000",
        "1970-01-01T00:00:00+00:00", "1970-01-01 00:00:00Z", "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00,5Z", "1970-00-01T00:00:00Z", "1970-13-01T00:00:00Z",
        "1970-01-00T00:00:00Z", "1970-01-32T00:00:00Z", "1970-01-01T24:00:00Z",
        "1970-01-01T00:60:00Z", "1970-01-01T00:00:61Z", "1970-01-01T00:00:0Z",
        "+970-01-01T00:00:00Z", "1970-1-01T00:00:000Z", "1970-01-01T00:00:00.xZ",
        "١٩٧٠-01-01T00:00:00Z", "19700101T000000.0000Z", "1970-01-01T00:00:00ZZ",
        "é970-01-01T00:00:00Z", " 1970-01-01T00:00:00Z",
    ])
    func `a malformed timestamp is refused`(text: String) {
        #expect(Timestamp(text) == nil)
    }

    @Test(arguments: [
        "2025-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2024-02-30T00:00:00Z",
        "2025-04-31T00:00:00Z",
    ])
    func `a day that its month does not have is refused`(text: String) {
        #expect(Timestamp(text) == nil)
    }

    @Test(arguments: ["1970-01-01T00:00:00.123xZ", "1970-01-01T00:00:00.000+01:00Z"])
    func `text after the third digit of a fraction is refused unless it is digits`(text: String) {
        #expect(Timestamp(text) == nil)
    }

    @Test(arguments: 1...100 as ClosedRange<UInt64>)
    func `every time of the four-digit years reads back`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let milliseconds = Int64.random(
            in: -62_167_219_200_000...253_402_300_799_999, using: &generator)
        let time = Timestamp(millisecondsSinceEpoch: milliseconds)
        #expect(Timestamp(time.description) == time)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `the texts of timestamps sort like their times`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let times = (0..<50).map { _ in
            Timestamp(
                millisecondsSinceEpoch: .random(in: 0...253_402_300_799_999, using: &generator))
        }
        #expect(times.sorted().map(\.description) == times.map(\.description).sorted())
    }

    @Test func `a leap second that ends the year 9999 is refused, for its year has no text`() {
        #expect(Timestamp("9999-12-31T23:59:60Z") == nil)
        #expect(
            Timestamp("9999-12-30T23:59:60Z")?.description == "9999-12-31T00:00:00.000Z")
    }

    @Test(arguments: [Int64.min, Int64.min + 1, Int64.max - 1, Int64.max])
    func `any millisecond count that a store may hold is written and measured`(milliseconds: Int64)
    {
        let time = Timestamp(millisecondsSinceEpoch: milliseconds)
        #expect(time.description.hasSuffix("Z"))
        let opposite = Timestamp(millisecondsSinceEpoch: ~milliseconds)
        #expect(
            time.duration(since: opposite)
                == .milliseconds(milliseconds) - .milliseconds(~milliseconds))
    }

    @Test func `advancing a timestamp and measuring the duration are inverse`() {
        let start = Timestamp(millisecondsSinceEpoch: 1_000_000)
        let later = start.advanced(by: .milliseconds(90_061_001))
        #expect(later.millisecondsSinceEpoch == 91_061_001)
        #expect(later.duration(since: start) == .milliseconds(90_061_001))
        #expect(later.advanced(by: .milliseconds(-90_061_001)) == start)
        #expect(start < later)
    }

    @Test(arguments: [Int64.max, Int64.max / 1000 + 1])
    func `a timestamp advanced by too much stays in the far future`(seconds: Int64) {
        let now = Timestamp(millisecondsSinceEpoch: 1_700_000_000_000)
        #expect(now.advanced(by: .seconds(seconds)) > now)
    }

    @Test func `a timestamp moved back by too much stays in the far past`() {
        let now = Timestamp(millisecondsSinceEpoch: 1_700_000_000_000)
        #expect(now.advanced(by: .seconds(-Int64.max)) < now)
    }
}
