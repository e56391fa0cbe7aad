internal import KedgeFiles
internal import KedgeModel

/// Bytes before a break, which are fetched again to see whether the file is still the same.
struct Overlap: Sendable {
    private var expected: ArraySlice<UInt8>

    /// - Parameter expected: What is in the temporary file.
    init(_ expected: [UInt8] = []) { self.expected = expected[...] }

    var byteCount: Int64 { Int64(expected.count) }

    /// Compares the next bytes of a body.
    ///
    /// - Returns: Those that come after what is known; nil when known ones are others.
    mutating func strip(_ piece: [UInt8]) -> [UInt8]? {
        guard !expected.isEmpty else { return piece }
        let count = min(piece.count, expected.count)
        guard piece[..<count] == expected.prefix(count) else { return nil }
        expected = expected.dropFirst(count)
        return Array(piece[count...])
    }

    /// Reads bytes of the temporary file; fewer where the file ends.
    static func read(_ range: ByteRange, from file: any OpenFile) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(range.byteCount))
        var count = 0
        while count < bytes.count {
            let read = try bytes.withUnsafeMutableBytes {
                try file.read(
                    into: UnsafeMutableRawBufferPointer(rebasing: $0[count...]),
                    at: range.start + Int64(count))
            }
            guard read > 0 else { break }
            count += read
        }
        return Array(bytes.prefix(count))
    }
}

extension DownloadWorker {
    /// What is compared before a chunk goes on, where no strong tag speaks for the version: the bytes
    /// before it, also those of the chunk before when that is confirmed.
    func overlap(before chunk: inout ChunkFetch, in temp: TempFile) async throws -> Overlap {
        if case .tag = download.validator { return Overlap() }
        let follows = chunk.index > 0 && confirmed.contains(chunk.index - 1)
        let present = chunk.part.byteCount + (follows ? download.chunkSize : 0)
        guard present > 0 else { return Overlap() }
        let end = chunk.missing.start
        let known = ByteRange(start: end - min(chunk.overlapByteCount, present), end: end)
        let bytes = try await context.onDisk("read back", "download's folder") {
            try Overlap.read(known, from: temp.file)
        }
        guard bytes.count == known.byteCount else {
            // The temporary file was cut: fetch the chunk from its first byte.
            try await discard(&chunk)
            return Overlap()
        }
        return Overlap(bytes)
    }
}
