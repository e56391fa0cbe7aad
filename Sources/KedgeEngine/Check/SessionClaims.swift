internal import KedgeHash
internal import KedgeModel

/// Compares a session's rows with its staging area: a value without I/O.
///
/// Add chunks first, then partials, both by rising index.
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
    /// Chunks whose partials have an unusable saved hash.
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
        if SHA256Hasher(savedState: partial.hashState, byteCount: partial.byteCount) == nil {
            badPartials.insert(partial.index)
        }
    }

    /// True when the staging area has the partial of a chunk and its saved hash is readable.
    func canHash(partialOf index: Int) -> Bool {
        !uncoveredPartials.contains(index) && !badPartials.contains(index)
    }

    /// True when no received byte is stored.
    var isEmpty: Bool { coveredCount == 0 }

    /// True when some received bytes are missing.
    var isShort: Bool { uncovered.count > 0 || uncoveredPartials.count > 0 }

    /// True when the saved prefix can match the rows. Always true for a short area, which loses its
    /// prefix anyway.
    var hasUsablePrefix: Bool {
        guard let prefix = record.prefix, !isShort else { return true }
        return prefix.offset <= contiguousEnd
            && SHA256Hasher(savedState: prefix.state, byteCount: prefix.offset) != nil
    }

    /// The faults that are known without reading a byte.
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
            "of the bytes received up to \(claimedEnd), \(uncovered.count) chunks and "
                + "\(uncoveredPartials.count) partials are not stored as recorded"
                + "\(isMissing ? ", nothing is stored" : "") (\(record.state.rawValue) session)",
            chunks: uncovered)
    }

    /// A notice about bytes that the store reports but cannot return.
    func uncheckedFinding(isListed: Bool) -> CheckFinding {
        let listed =
            "parts of an unfinished upload cannot be read; "
            + "only their presence and size are checked"
        let unlisted =
            "the store does not list the parts of unfinished uploads; they are not checked"
        return CheckFinding(
            .bytesUnchecked, record.id.text,
            "\(isListed ? listed : unlisted) (\(record.state.rawValue) session)")
    }

    func chunkFinding(_ chunks: ChunkSet) -> CheckFinding {
        CheckFinding(
            .chunkDamaged, record.id.text,
            "\(chunks.count) chunks do not match their SHA-256 (\(record.state.rawValue) session)",
            chunks: chunks)
    }

    func partialFinding(_ chunks: ChunkSet) -> CheckFinding {
        CheckFinding(
            .partialDamaged, record.id.text,
            "\(chunks.count) partials do not match their saved hash "
                + "(\(record.state.rawValue) session)",
            chunks: chunks)
    }

    var prefixFinding: CheckFinding {
        CheckFinding(
            .prefixDamaged, record.id.text,
            "the saved hash of the first \(record.prefix?.offset ?? 0) bytes does not match them "
                + "(\(record.state.rawValue) session)")
    }
}
