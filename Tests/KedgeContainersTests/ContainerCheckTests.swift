import KedgeContainers
import Testing

// R21.
struct ContainerCheckTests {
    @Test(arguments: Fixture.allCases)
    func `an uncut file of each format is complete`(fixture: Fixture) {
        #expect(MemoryFile(fixture.bytes).verdict() == .complete(fixture.format))
    }

    /// Cuts the file anywhere behind its first bytes. Only line ends after the last mark may miss.
    @Test(arguments: Fixture.allCases)
    func `a file that is cut short is noticed`(fixture: Fixture) {
        let bytes = fixture.bytes
        let last = fixture == .pdf ? bytes.count - 1 : bytes.count
        for count in 16..<last {
            // A fragmented film that ends between two fragments plays up to there.
            if fixture == .fragmentedMP4, [40, 60, 88].contains(count) { continue }
            // A picture cut right between its index and its data is a closed structure.
            if fixture == .heic, count == 62 { continue }
            guard case .truncated(fixture.format, _) = MemoryFile(Array(bytes[..<count])).verdict()
            else {
                Issue.record("\(fixture) of \(count) bytes counts as whole")
                continue
            }
        }
    }

    @Test func `the verdict on a truncated file names the reason`() {
        let mp4 = Fixture.mp4.bytes
        let withoutIndex = Array(mp4.dropLast(32))
        #expect(
            MemoryFile(withoutIndex).verdict() == .truncated(.isoBaseMedia, .indexMissing))
        #expect(
            MemoryFile(Array(mp4.dropLast())).verdict()
                == .truncated(.isoBaseMedia, .pieceCutShort))
        let pdf = Array(Fixture.pdf.bytes.dropLast(3))
        #expect(MemoryFile(pdf).verdict() == .truncated(.pdf, .endMissing))
        #expect(
            MemoryFile(pdf).verdict().complaint
                == "This PDF file looks incomplete: its end is missing.")
        #expect(MemoryFile(mp4).verdict().complaint == nil)
    }

    @Test func `bytes that follow an image are ignored`() {
        for fixture in [Fixture.jpeg, .png] {
            #expect(
                MemoryFile(fixture.bytes + Fixture.mp4.bytes.dropLast(9)).verdict()
                    == .complete(fixture.format))
        }
    }

    @Test(arguments: ["", "a", "plain text that is long enough", "\u{FF}\u{D8}", "%PDF", "ftyp"])
    func `files of other formats are not judged`(text: String) {
        #expect(MemoryFile(Array(text.utf8)).verdict() == .unknown)
    }

    @Test func `the end mark of a JPEG is found across blocks`() {
        let head = Array(Fixture.jpeg.bytes.dropLast(2))
        for padding in 65_400..<65_560 {
            let bytes = head + [UInt8](repeating: 0, count: padding) + [0xFF, 0xD9]
            #expect(MemoryFile(bytes).verdict() == .complete(.jpeg))
        }
    }

    @Test func `only the frames of a film's boxes are read`() {
        let file = MemoryFile(box("ftyp", 16) + box("mdat", 1 << 20) + box("moov", 1 << 16))
        #expect(file.verdict() == .complete(.isoBaseMedia))
        #expect(file.readByteCount < 100)
    }

    @Test func `lengths from a hostile file do not lead outside it`() {
        let start = box("ftyp", 16)
        let mdat = Array("mdat".utf8)
        let huge = start + bigEndian(1, 4) + mdat + [UInt8](repeating: 0xFF, count: 8)
        #expect(MemoryFile(huge).verdict() == .truncated(.isoBaseMedia, .pieceCutShort))
        let longest = start + bigEndian(1, 4) + mdat + bigEndian(.max, 8)
        #expect(MemoryFile(longest).verdict() == .truncated(.isoBaseMedia, .pieceCutShort))
        for length in 2..<8 {
            #expect(MemoryFile(start + bigEndian(length, 4) + mdat).verdict() == .unknown)
        }
        // This 64-bit length does not even span itself.
        #expect(
            MemoryFile(start + bigEndian(1, 4) + mdat + bigEndian(15, 8)).verdict() == .unknown)
        // A box that is open to the end does not show whether it is complete.
        #expect(MemoryFile(start + bigEndian(0, 4) + mdat).verdict() == .unknown)
        let png = Array(Fixture.png.bytes[..<8]) + [0xFF, 0xFF, 0xFF, 0xFF] + Array("IDAT".utf8)
        #expect(MemoryFile(png).verdict() == .truncated(.png, .pieceCutShort))
        let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 1, 0, 0]
        #expect(MemoryFile(jpeg).verdict() == .unknown)
    }

    @Test func `the check gives up on a file of very many parts`() {
        let parts = [UInt8](
            [
                box("ftyp", 0),
                [[UInt8]](repeating: box("free", 0), count: 200_001)
                    .flatMap(\.self),
            ].joined())
        #expect(MemoryFile(parts).verdict() == .unknown)
        let fill = [0xFF, 0xD8] + [UInt8](repeating: 0xFF, count: 200_001)
        #expect(MemoryFile(fill).verdict() == .unknown)
    }
}
