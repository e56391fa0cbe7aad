internal import KedgeFiles
internal import KedgeModel

/// Known bytes before a break, fetched again to check that the file is unchanged.
struct Overlap: Sendable {
    private var expected: ArraySlice<UInt8>

    /// - Parameter expected: Bytes in the temporary file.
    init(_ expected: [UInt8] = []) { self.expected = expected[...] }

    var byteCount: Int64 { Int64(expected.count) }

    /// Compares the next bytes of a body.
    ///
    /// - Returns: The bytes after the known ones; nil if a known byte differs.
    mutating func strip(_ bytes: [UInt8]) -> [UInt8]? {
        guard !expected.isEmpty else { return bytes }
        let count = min(bytes.count, expected.count)
        guard bytes[..<count] == expected.prefix(count) else { return nil }
        expected = expected.dropFirst(count)
        return Array(bytes[count...])
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
    /// Returns the bytes to compare before a chunk resumes, if no strong tag identifies the
    /// version. These are the bytes before the break, including those of the previous chunk if it
    /// is confirmed.
    func overlap(before chunk: inout ChunkFetch, in temp: TempFile) async throws -> Overlap {
        if case .tag = download.validator { return Overlap() }
        let follows = chunk.index > 0 && confirmed.contains(chunk.index - 1)
        let present = chunk.progress.byteCount + (follows ? download.chunkSize : 0)
        guard present > 0 else { return Overlap() }
        let end = chunk.missing.start
        let known = ByteRange(start: end - min(chunk.overlapByteCount, present), end: end)
        let bytes = try await context.onDisk("read back", .downloadFolder) {
            try Overlap.read(known, from: temp.file)
        }
        guard bytes.count == known.byteCount else {
            // The temporary file was truncated: the chunk is fetched from its first byte.
            try await discard(&chunk)
            return Overlap()
        }
        return Overlap(bytes)
    }
}
