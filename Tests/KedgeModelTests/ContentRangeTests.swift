import KedgeModel
import KedgeTesting
import Testing

/// R56, R84, R91.
struct ContentRangeTests {
    @Test(
        arguments: [
            ("bytes 0-0/1", 0, 1, 1), ("bytes 0-99/250", 0, 100, 250),
            ("Bytes 200-249/250", 200, 250, 250), ("bytes 0-9/*", 0, 10, nil),
            ("bytes 007-009/0010", 7, 10, 10),
            ("bytes 0-9223372036854775806/9223372036854775807", 0, Int64.max, Int64.max),
            ("bytes 9223372036854775806-9223372036854775806/*", Int64.max - 1, Int64.max, nil),
        ] as [(String, Int64, Int64, Int64?)])
    func `a content range is read with or without a total`(
        value: String, start: Int64, end: Int64, total: Int64?
    ) {
        let expected = ContentRange(range: ByteRange(start: start, end: end), total: total)
        #expect(ContentRange(value) == expected)
    }

    @Test(
        arguments: [
            ("bytes */0", 0), ("bytes */250", 250), ("BYTES */9223372036854775807", Int64.max),
        ] as [(String, Int64)])
    func `an unsatisfied content range has only a total`(value: String, total: Int64) {
        #expect(ContentRange(value) == ContentRange(range: nil, total: total))
    }

    @Test(arguments: [
        "", "bytes", "bytes ", "bytes  0-1/2", "bytes 0-1", "bytes 0-1/", "bytes /2", "bytes -/2",
        "bytes 0-/2", "bytes -1/2", "bytes 1/2", "bytes */*", "bytes 0-1/2/3", "bytes 0-1-2/3",
        "bytes=0-1/2", "items 0-1/2", " bytes 0-1/2", "bytes 0-1/2 ", "bytes 0 -1/2",
        "bytes 0- 1/2", "bytes\t0-1/2", "bytes 1-0/2", "bytes 0-2/2", "bytes 2-2/2", "bytes 0-0/0",
        "bytes +0-1/2", "bytes 0-+1/2", "bytes 0-1/+2", "bytes 0-1/-2", "bytes -0-1/2",
        "bytes 0-1e3/2000", "bytes 0-1/1e3", "bytes ٠-١/٢", "bytes 0-1/2٣",
        "bytes 0-9223372036854775807/*", "bytes 0-9223372036854775808/*",
        "bytes 18446744073709551616-1/2", "bytes 0-1/9223372036854775808",
        "bytes 0-1/18446744073709551616", "bytes 0-18446744073709551615/*",
    ])
    func `a malformed content range is refused without a trap`(value: String) {
        #expect(ContentRange(value) == nil)
    }

    @Test(arguments: 1...50 as ClosedRange<UInt64>)
    func `a written content range reads back`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let start = Int64.random(in: 0..<(1 << 50), using: &generator)
        let end = start + Int64.random(in: 1...(1 << 40), using: &generator)
        let total =
            Bool.random(using: &generator) ? end + Int64.random(in: 0...9, using: &generator) : nil
        let range = ContentRange(range: ByteRange(start: start, end: end), total: total)
        #expect(ContentRange(range.description) == range)
    }

    @Test func `an empty content range is written as an unsatisfied one`() {
        let empty = ByteRange(start: 3, end: 3)
        #expect(empty.isEmpty)
        #expect(empty.byteCount == 0)
        #expect(ContentRange(range: empty, total: 9).description == "bytes */9")
        #expect(ContentRange(range: nil, total: 9).description == "bytes */9")
    }
}
