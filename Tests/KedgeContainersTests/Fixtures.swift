import KedgeContainers

/// The smallest file of each format, made by hand from the specifications.
enum Fixture: String, CaseIterable {
    case jpeg, progressiveJPEG, png, pdf, mp4, fragmentedMP4, heic

    var format: ContainerFormat {
        switch self {
        case .jpeg, .progressiveJPEG: .jpeg
        case .png: .png
        case .pdf: .pdf
        case .mp4, .fragmentedMP4, .heic: .isoBaseMedia
        }
    }

    var bytes: [UInt8] {
        switch self {
        case .jpeg:
            // A preview inside a segment has an end mark of its own, which is not the image's.
            [0xFF, 0xD8] + segment(0xE1, [0xFF, 0xD8, 0xFF, 0xD9]) + [0xFF] + segment(0xDB, [1, 2])
                + segment(0xDA, [3, 4, 5]) + [0x11, 0xFF, 0x00, 0x22, 0xFF, 0xD0, 0x33]
                + [0xFF, 0xD9]
        case .progressiveJPEG:
            [0xFF, 0xD8] + segment(0xC2, [0]) + segment(0xDA, [1]) + [0x44, 0x55]
                + segment(0xC4, [2, 2]) + segment(0xDA, [3]) + [0x66] + [0xFF, 0xD9]
        case .png:
            [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunk("IHDR", 13)
                + chunk("IDAT", 40) + chunk("IEND", 0)
        case .pdf:
            Array("%PDF-1.7\n1 0 obj\n<<>>\nendobj\nstartxref\n9\n%%EOF\n".utf8)
        case .mp4:
            box("ftyp", 16) + largeBox("mdat", 50) + box("moov", 24)
        case .fragmentedMP4:
            box("ftyp", 16) + box("moov", 8) + box("moof", 12) + box("mdat", 20) + box("mfra", 4)
        case .heic:
            box("ftyp", 16) + box("meta", 30) + box("mdat", 20)
        }
    }

    private func segment(_ mark: UInt8, _ content: [UInt8]) -> [UInt8] {
        [0xFF, mark, 0, UInt8(content.count + 2)] + content
    }

    private func chunk(_ type: String, _ count: Int) -> [UInt8] {
        bigEndian(count, 4) + Array(type.utf8) + [UInt8](repeating: 7, count: count + 4)
    }
}

/// A box of ISO base media with a content of zeros.
func box(_ type: String, _ count: Int) -> [UInt8] {
    bigEndian(count + 8, 4) + Array(type.utf8) + [UInt8](repeating: 0, count: count)
}

/// A box of ISO base media whose length has 64 bits.
func largeBox(_ type: String, _ count: Int) -> [UInt8] {
    bigEndian(1, 4) + Array(type.utf8) + bigEndian(count + 16, 8)
        + [UInt8](repeating: 0, count: count)
}

func bigEndian(_ value: Int, _ byteCount: Int) -> [UInt8] {
    (0..<byteCount).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
}

/// A file in memory that counts the bytes read from it.
final class MemoryFile {
    private let bytes: [UInt8]
    private(set) var readByteCount = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func verdict(claimedByteCount: Int64? = nil) -> ContainerCheckResult {
        ContainerCheck<Never>(byteCount: claimedByteCount ?? Int64(bytes.count)) { offset, count in
            let rest = self.bytes.dropFirst(Int(clamping: offset)).prefix(count)
            self.readByteCount += rest.count
            return Array(rest)
        }.verdict()
    }
}
