internal import KedgeFiles
internal import KedgeHash
package import KedgeModel

/// Bytes that go on where the contiguous ones end: the write of tus and IETF uploads, and of a whole
/// body in one request.
package struct AppendPut: Sendable {
    /// Where the body starts; must be the session's contiguous offset.
    package var offset: Int64
    /// SHA-256 of this body. With it the whole append counts at its end, or not at all.
    package var checksum: SHA256Digest?
    /// True when the file ends with this body.
    package var completes: Bool

    package init(offset: Int64, checksum: SHA256Digest? = nil, completes: Bool = false) {
        self.offset = offset
        self.checksum = checksum
        self.completes = completes
    }
}

extension TransferEngine {
    /// The offset at which an append goes on.
    package func contiguousOffset(of id: SessionID, owner: OwnerID) async throws -> Int64 {
        try await translating {
            try await registry.withSession(id, owner: owner) {
                try await $0.requireOpen()
                return await $0.ledger.contiguousOffset
            }
        }
    }

    /// Appends a body at the contiguous offset, cut into chunks inside.
    ///
    /// - Returns: The new contiguous offset; every byte below it is durable.
    /// - Throws: `OFFSET_MISMATCH`, `FILE_TOO_LARGE`, `LENGTH_MISMATCH`, `CHUNK_HASH_MISMATCH` for a
    ///   wrong checksum, `CHUNK_CONFLICT`, and what ``putChunk(_:to:owner:body:)`` throws. What came
    ///   before an interruption counts, unless a checksum was given.
    package func append(
        _ put: AppendPut, to id: SessionID, owner: OwnerID, body: some ByteBody
    ) async throws -> Int64 {
        try await admittingWrite {
            try await registry.withSession(id, owner: owner) { live in
                try await writing(.append, of: live) { writer in
                    let ledger = await live.ledger
                    try self.validate(put, ledger, announced: body.announcedByteCount)
                    var appender = Appender(
                        live: live, parts: self.parts, writer: writer, put: put,
                        limit: ledger.record.fileSize ?? self.configuration.maxFileSize)
                    try await appender.run(try await body.makeReader())
                    return await live.ledger.contiguousOffset
                }
            }
        }
    }

    private func validate(_ put: AppendPut, _ ledger: SessionLedger, announced: Int64?) throws {
        guard put.offset == ledger.contiguousOffset else {
            var error = EngineError(.offsetMismatch)
            error.expectedOffset = ledger.contiguousOffset
            throw error
        }
        let (end, overflow) = put.offset.addingReportingOverflow(announced ?? 0)
        let limit = ledger.record.fileSize ?? configuration.maxFileSize
        guard !overflow, end <= limit else { throw tooLarge() }
    }
}
