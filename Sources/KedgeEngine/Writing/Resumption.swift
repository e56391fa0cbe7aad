internal import KedgeHash
internal import KedgeModel

/// Where a native body for a chunk goes, as decided from what is recorded of the chunk: a value without I/O.
///
/// Bytes that were acknowledged are never written over by a body of which it is not known that they are its own. So a
/// body that names another digest, or cannot go on after a partial in doubt, lies beside.
enum Resumption: Equatable {
    /// Where the chunk will lie, after the partial if there is one.
    case inPlace(PartialRecord?)
    /// Beside the partial, after the rival if there is one.
    ///
    /// Only one is kept when its body breaks off: of a third body for a chunk, nothing counts before its end.
    case beside(PartialRecord?, isKept: Bool)

    init(of put: ChunkPut, _ view: ChunkView, chunk: ByteRange) {
        // A size that was told since may have made it too long.
        let rival = view.rival.flatMap { $0.byteCount < chunk.byteCount ? $0 : nil }
        if let rival, rival.declaredDigest == put.digest {
            self = .beside(rival, isKept: true)
        } else if let partial = view.partial {
            let isOurs = partial.declaredDigest == nil || partial.declaredDigest == put.digest
            self =
                isOurs && !partial.isInDoubt
                ? .inPlace(partial) : .beside(nil, isKept: rival == nil)
        } else {
            self = .inPlace(nil)
        }
    }

    /// What the body goes on after.
    var partial: PartialRecord? {
        switch self {
        case .inPlace(let partial), .beside(let partial, _): partial
        }
    }

    /// Whether the bytes take room in two places in the end.
    var isBeside: Bool { if case .beside = self { true } else { false } }

    /// Checks that the body lies where it may: it starts not after the bytes that are there. One
    /// that starts before their end passes over them; when the client still waits with it, it is
    /// told where to go on instead, and no byte is sent twice. One that counts only as a whole ends
    /// where the chunk does.
    ///
    /// - Throws: `OFFSET_MISMATCH`, `RANGE_MISMATCH`.
    func require(_ body: ByteRange, chunk: ByteRange, isHeldBack: Bool) throws {
        let expected = chunk.start + (partial?.byteCount ?? 0)
        guard body.start == expected || (body.start < expected && !isHeldBack) else {
            var error = EngineError(.offsetMismatch)
            error.expectedOffset = expected
            throw error
        }
        if case .beside(_, isKept: false) = self, body.end < chunk.end {
            throw EngineError.onlyWhole
        }
    }
}

extension EngineError {
    /// The error of a part of a chunk that has as many other bodies as are kept.
    static let onlyWhole = EngineError(
        .rangeMismatch, "Other bodies for this chunk are here: send the whole chunk.")
}
