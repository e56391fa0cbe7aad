package import KedgeEngine
package import KedgeModel

/// Bytes that a row records as durable.
package struct DurableClaim: Hashable, Sendable {
    /// The session's staged bytes; nil for those of a file.
    package let staging: StagingKey?
    /// The blob that has the bytes, or will have them; nil while it is unknown.
    package let blob: SHA256Digest?
    package let range: ByteRange
    /// Digest of the range.
    package let digest: SHA256Digest
}

extension SimulatedMetadata {
    /// Everything that the rows claim at this moment.
    ///
    /// - Throws: `unavailable` once the power is off.
    package func durableClaims() throws -> [DurableClaim] {
        try inspect { rows in
            let chunks = rows.sessionsInOrder.filter(\.hasStaging).flatMap { session in
                session.progress.chunks.compactMap { chunk in
                    session.record.layout.range(ofChunk: chunk.index).map { range in
                        DurableClaim(
                            staging: session.record.stagingKey, blob: session.record.finalDigest,
                            range: ByteRange(
                                start: range.start, end: range.start + chunk.byteCount),
                            digest: chunk.digest)
                    }
                }
            }
            let files = rows.files.values.map(\.record).filter { $0.deletedAt == nil }.map { file in
                DurableClaim(
                    staging: nil, blob: file.digest,
                    range: ByteRange(start: 0, end: file.byteCount), digest: file.digest)
            }
            return chunks + files
        }
    }
}
