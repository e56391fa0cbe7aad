import KedgeModel
import KedgeTesting
import Testing

struct FileTimeTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000000000Z"), (1, "1970-01-01T00:00:00.000000001Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (-1_000_000_000, "1969-12-31T23:59:59.000000000Z"),
            (1_764_106_893_123_456_789, "2025-11-25T21:41:33.123456789Z"),
            (.max, "2262-04-11T23:47:16.854775807Z"),
        ] as [(Int64, String)])
    func `known times are written and read`(nanoseconds: Int64, text: String) {
        let time = FileTime(nanosecondsSinceEpoch: nanoseconds)
        #expect(time.text == text)
        #expect(FileTime(text) == time)
    }

    @Test(
        arguments: [
            ("1970-01-01T00:00:01Z", 1_000_000_000), ("1970-01-01T00:00:00.5Z", 500_000_000),
            ("1970-01-01T00:00:00.000001Z", 1000), ("1970-01-01T00:00:00.1234567899Z", 123_456_789),
            ("1969-12-31T23:59:59.25Z", -750_000_000),
        ] as [(String, Int64)])
    func `a fraction of any length is read down to nanoseconds`(text: String, nanoseconds: Int64) {
        #expect(FileTime(text)?.nanosecondsSinceEpoch == nanoseconds)
    }

    @Test(arguments: [
        "", "yesterday", "1764106893", "2025-11-25", "2025-11-25T21:41:33", "2025-11-25T21:41:33.Z",
        "2025-11-25T21:41:33+01:00", "2025-11-25T21:41:33.123xZ", "2025-02-29T00:00:00Z",
        // Outside of 64 bits.
        "9999-12-31T23:59:59Z", "2262-04-11T23:47:16.854775808Z", "0001-01-01T00:00:00Z",
    ])
    func `another text is no time`(text: String) {
        #expect(FileTime(text) == nil)
    }

    @Test(arguments: 1...100 as ClosedRange<UInt64>)
    func `every time reads back`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        // The first second of the range is not whole.
        let first = Int64.min + 1_000_000_000
        let nanoseconds = Int64.random(in: first...Int64.max, using: &generator)
        let time = FileTime(nanosecondsSinceEpoch: nanoseconds)
        #expect(FileTime(time.text) == time)
    }

    @Test func `a date of HTTP becomes a time`() {
        let date = Timestamp(httpDate: "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(date.flatMap { FileTime($0) }?.text == "1994-11-06T08:49:37.000000000Z")
        let late = Timestamp(httpDate: "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(late != nil)
        #expect(late.flatMap { FileTime($0) } == nil)
    }
}
