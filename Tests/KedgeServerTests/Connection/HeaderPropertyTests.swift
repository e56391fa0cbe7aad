import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// Header parsers on random input: no range leaves the file, and no name leaves its field.
struct HeaderPropertyTests {
    private static func text(
        _ alphabet: [Character], upTo count: Int, _ generator: inout SplitMix64
    ) -> String {
        String(
            (0..<Int.random(in: 0...count, using: &generator)).map { _ in
                alphabet.randomElement(using: &generator) ?? " "
            })
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a Range header never yields bytes outside the file`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let alphabet = Array("0123456789999--,,, =bytes٣\u{0}")
        for _ in 0..<500 {
            let size = Int64.random(in: 0...30, using: &generator)
            let value = "bytes=" + Self.text(alphabet, upTo: 40, &generator)
            guard case .ranges(let ranges) = RangeHeader(value, fileSize: size) else { continue }
            #expect((1...RangeHeader.maxRangeCount).contains(ranges.count), "\(value)")
            for range in ranges {
                #expect(!range.isEmpty && range.start >= 0 && range.end <= size, "\(value)")
            }
            let sorted = ranges.sorted { $0.start < $1.start }
            for (range, next) in zip(sorted, sorted.dropFirst()) {
                #expect(range.end < next.start, "\(value)")
            }
        }
    }

    @Test(arguments: [0, 1, 5000, Int64.max])
    func `range numbers at the edge of an integer do not trap`(size: Int64) {
        let numbers = [
            "0", "1", "2147483648", "9007199254740992", "9223372036854775806",
            "9223372036854775807", "9223372036854775808", "18446744073709551616",
        ]
        for first in numbers + [""] {
            for last in numbers + [""] {
                let header = RangeHeader("bytes=\(first)-\(last)", fileSize: size)
                guard case .ranges(let ranges) = header else { continue }
                #expect(ranges.allSatisfy { $0.end <= size && !$0.isEmpty })
            }
        }
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `a file name survives Content-Disposition`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let alphabet = Array("aZ09 .;,=\"'%*\\()<>@:?[]{}é日🏴‍☠️\u{301}")
        for _ in 0..<200 {
            let name = "n" + Self.text(alphabet, upTo: 30, &generator)
            let value = ContentDisposition.attachment(name)
            #expect(value.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "\(name)")
            #expect(ContentDisposition.fileName(in: value) == name)
        }
    }

    /// A line break in a header would let a name add headers of its own.
    @Test(arguments: ["a\r\nX: 1", "a\0b", "a\u{7F}b", "\u{202E}x", "a\tb"])
    func `no character of a file name leaves its header field`(name: String) {
        let value = ContentDisposition.attachment(name)
        #expect(value.utf8.allSatisfy { (0x20...0x7E).contains($0) })
        #expect(ContentDisposition.fileName(in: value) == name)
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `noise in Content-Disposition never makes a longer name`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let alphabet = Array("filename*='\"\\;% UTF-8%41%E2%zz\u{0}é")
        for _ in 0..<500 {
            let value = "x; filename*=" + Self.text(alphabet, upTo: 60, &generator)
            // Decoding never lengthens text: a name is at most as long as its field.
            let name = ContentDisposition.fileName(in: value)
            #expect((name ?? "").utf8.count <= value.utf8.count, "\(value)")
        }
    }

    @Test func `entity tags are split at commas outside of quotes`() {
        #expect(EntityTags.ifMatch("\"a,b\"", allows: "\"a,b\""))
        #expect(!EntityTags.ifMatch("\"a,b\"", allows: "b\""))
        #expect(!EntityTags.ifMatch("\"a\"\"b\"", allows: "\"a\""))
        #expect(EntityTags.ifNoneMatch(",, \"a\" ,W/\"b\",", names: "\"b\""))
        #expect(!EntityTags.ifRange("W/\"a\"", names: "\"a\""))
    }
}
