internal import KedgeHash
internal import KedgeModel

/// What a session's rows claim, held against what its staging area has: a value without I/O.
///
/// Chunks and partials are added by rising index, chunks first.
struct SessionClaims {
    private let record: SessionRecord
    /// False when there is no staging area.
    private let isPresent: Bool
    /// The first of the chunks.
    private(set) var first: CommittedChunk?
    private var claimedEnd: Int64 = 0
    private var contiguousEnd: Int64 = 0
    private var coveredCount = 0
    /// Chunks that the staging area does not have.
    private(set) var uncovered = ChunkSet()
    /// Chunks of whose partials the saved hash is useless.
    private(set) var badPartials = ChunkSet()
    private var uncoveredPartials = ChunkSet()

    init(_ record: SessionRecord, isPresent: Bool) {
        self.record = record
        self.isPresent = isPresent
    }

    private func start(ofChunk index: Int) -> Int64 {
        record.layout.range(ofChunk: index)?.start ?? 0
    }

    mutating func add(_ chunk: CommittedChunk, isCovered: Bool) {
        first = first ?? chunk
        let start = start(ofChunk: chunk.index)
        let end = start + chunk.byteCount
        claimedEnd = max(claimedEnd, end)
        if start == contiguousEnd { contiguousEnd = end }
        if isCovered { coveredCount += 1 } else { uncovered.insert(chunk.index) }
    }

    mutating func add(_ partial: PartialRecord, isCovered: Bool) {
        claimedEnd = max(claimedEnd, start(ofChunk: partial.index) + partial.byteCount)
        guard isCovered else {
            uncoveredPartials.insert(partial.index)
            return
        }
        coveredCount += 1
        if SHA256Hasher(savedState: partial.hashState)?.byteCount != partial.byteCount {
            badPartials.insert(partial.index)
        }
    }

    /// True when the staging area has the partial of a chunk and its hash can be read.
    func canHash(partialOf index: Int) -> Bool {
        !uncoveredPartials.contains(index) && !badPartials.contains(index)
    }

    /// True when nothing was received, or nothing of it is there.
    var isEmpty: Bool { coveredCount == 0 }

    /// True when not all is there that was received.
    var isShort: Bool { uncovered.count > 0 || uncoveredPartials.count > 0 }

    /// True when the saved prefix can be what the rows say. An area that is short has lost it anyway.
    var hasUsablePrefix: Bool {
        guard let prefix = record.prefix, !isShort else { return true }
        return prefix.offset <= contiguousEnd
            && SHA256Hasher(savedState: prefix.state)?.byteCount == prefix.offset
    }

    /// What is wrong without looking at a byte.
    var findings: [CheckFinding] {
        var findings: [CheckFinding] = []
        if isShort { findings.append(shortFinding) }
        if badPartials.count > 0 { findings.append(partialFinding(badPartials)) }
        if !hasUsablePrefix { findings.append(prefixFinding) }
        return findings
    }

    private var shortFinding: CheckFinding {
        let isMissing = !isPresent && isEmpty
        return CheckFinding(
            isMissing ? .stagingMissing : .stagingShort, record.id.text,
            "of what was received up to byte \(claimedEnd), \(uncovered.count) chunks and "
                + "\(uncoveredPartials.count) partials are not there as recorded"
                + "\(isMissing ? ", nor anything else" : "") (\(record.state.rawValue) session)",
            chunks: uncovered)
    }

    /// Bytes that are there as far as the store says, and that nobody can read.
    func uncheckedFinding(isListed: Bool) -> CheckFinding {
        CheckFinding(
            .bytesUnchecked, record.id.text,
            (isListed
                ? "parts of an unfinished upload cannot be read; only their presence and size are checked"
                : "the store does not list the parts of unfinished uploads; they are not checked")
                + " (\(record.state.rawValue) session)")
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
