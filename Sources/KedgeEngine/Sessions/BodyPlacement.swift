internal import KedgeHash
internal import KedgeModel

/// The place for a native body of a chunk, decided from the chunk's recorded state. A value without
/// I/O.
///
/// A body never overwrites acknowledged bytes that may not be its own. A body that has another
/// digest, or cannot continue a partial in doubt, is therefore written beside the partial.
enum BodyPlacement: Equatable {
    /// In the chunk's place, after the partial if there is one.
    case inPlace(PartialRecord?)
    /// Beside the partial, after the rival if there is one.
    ///
    /// Only one rival is kept when its body breaks off. Of a third body for a chunk, no byte counts
    /// before its end.
    case beside(PartialRecord?, isKept: Bool)

    init(of put: ChunkPut, _ view: ChunkView, chunk: ByteRange) {
        // A size declared since may have made it too long.
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

    /// The recorded bytes that the body continues.
    var partial: PartialRecord? {
        switch self {
        case .inPlace(let partial), .beside(let partial, _): partial
        }
    }

    /// Whether the bytes need room in two places in the end.
    var isBeside: Bool { if case .beside = self { true } else { false } }

    /// Checks that the body starts at or before the end of the recorded bytes.
    ///
    /// Recorded bytes that the body repeats are skipped. If its client still waits for
    /// `100 Continue`, it is refused with the expected offset instead, so that no byte is sent
    /// twice. A body that counts only as a whole must end where the chunk does.
    ///
    /// - Throws: `OFFSET_MISMATCH`, `RANGE_MISMATCH`.
    func require(_ body: ByteRange, chunk: ByteRange, awaitsContinue: Bool) throws {
        let expected = chunk.start + (partial?.byteCount ?? 0)
        guard body.start == expected || (body.start < expected && !awaitsContinue) else {
            throw EngineError.offsetMismatch(expected: expected)
        }
        if case .beside(_, isKept: false) = self, body.end < chunk.end {
            throw EngineError.onlyWhole
        }
    }
}

extension EngineError {
    /// The error for a part of a chunk that already has the maximum number of unfinished bodies.
    static let onlyWhole = EngineError(
        .rangeMismatch, "Too many partial bodies of this chunk: send the whole chunk.")
}
