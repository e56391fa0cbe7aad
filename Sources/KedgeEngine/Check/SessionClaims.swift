internal import KedgeHash
internal import KedgeModel

/// What a session's rows claim, held against the size of its staging file: a value without I/O.
///
/// Chunks and partials are added by rising index, chunks first.
struct SessionClaims {
    private let record: SessionRecord
    /// Size of the staging file; nil when there is none.
    private let stagingByteCount: Int64?
    private var claimedEnd: Int64 = 0
    private var contiguousEnd: Int64 = 0
    /// Chunks that the staging file does not cover.
    private(set) var uncovered = ChunkSet()
    /// Chunks of whose partials the saved hash is useless.
    private(set) var badPartials = ChunkSet()
    private var uncoveredPartials = ChunkSet()

    init(_ record: SessionRecord, stagingByteCount: Int64?) {
        self.record = record
        self.stagingByteCount = stagingByteCount
    }

    private func start(ofChunk index: Int) -> Int64 {
        record.layout.range(ofChunk: index)?.start ?? 0
    }

    mutating func add(_ chunk: CommittedChunk) {
        let start = start(ofChunk: chunk.index)
        let end = start + chunk.byteCount
        claimedEnd = max(claimedEnd, end)
        if start == contiguousEnd { contiguousEnd = end }
        if end > stagingByteCount ?? 0 { uncovered.insert(chunk.index) }
    }

    mutating func add(_ partial: PartialRecord) {
        let end = start(ofChunk: partial.index) + partial.byteCount
        claimedEnd = max(claimedEnd, end)
        if end > stagingByteCount ?? 0 {
            uncoveredPartials.insert(partial.index)
        } else if SHA256Hasher(savedState: partial.hashState)?.byteCount != partial.byteCount {
            badPartials.insert(partial.index)
        }
    }

    /// True when the staging file covers the partial of a chunk and its hash can be read.
    func canHash(partialOf index: Int) -> Bool {
        !uncoveredPartials.contains(index) && !badPartials.contains(index)
    }

    /// True when the file ends before what was received.
    var isShort: Bool { claimedEnd > stagingByteCount ?? 0 }

    /// True when the saved prefix can be what the rows say. A short file has lost it anyway.
    var hasUsablePrefix: Bool {
        guard let prefix = record.prefix, !isShort else { return true }
        return prefix.offset <= contiguousEnd
            && SHA256Hasher(savedState: prefix.state)?.byteCount == prefix.offset
    }

    /// What is wrong without looking at a byte.
    var findings: [CheckFinding] {
        var findings: [CheckFinding] = []
        if isShort {
            let found = stagingByteCount.map { "it ends at \($0)" } ?? "there is none"
            findings.append(
                CheckFinding(
                    stagingByteCount == nil ? .stagingMissing : .stagingShort, record.id.text,
                    "the staging file should have \(claimedEnd) bytes, \(found)"
                        + "; \(uncovered.count) chunks and \(uncoveredPartials.count) partials "
                        + "are lost (\(record.state.rawValue) session)",
                    chunks: uncovered))
        }
        if badPartials.count > 0 { findings.append(partialFinding(badPartials)) }
        if !hasUsablePrefix { findings.append(prefixFinding) }
        return findings
    }

    func chunkFinding(_ chunks: ChunkSet) -> CheckFinding {
        CheckFinding(
            .chunkDamaged, record.id.text,
            "\(chunks.count) chunks do not have their SHA-256 (\(record.state.rawValue) session)",
            chunks: chunks)
    }

    func partialFinding(_ chunks: ChunkSet) -> CheckFinding {
        CheckFinding(
            .partialDamaged, record.id.text,
            "\(chunks.count) partials do not fit their saved hash (\(record.state.rawValue) session)",
            chunks: chunks)
    }

    var prefixFinding: CheckFinding {
        CheckFinding(
            .prefixDamaged, record.id.text,
            "the saved hash of the first \(record.prefix?.offset ?? 0) bytes is not theirs "
                + "(\(record.state.rawValue) session)")
    }
}
