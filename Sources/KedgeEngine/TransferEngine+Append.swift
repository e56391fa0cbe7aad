package import KedgeModel

extension TransferEngine {
    /// Returns the offset at which an append continues.
    package func contiguousOffset(of id: SessionID, owner: OwnerID) async throws -> Int64 {
        try await translating {
            try await registry.withSession(id, owner: owner) {
                try await $0.requireOpen()
                return await $0.ledger.contiguousOffset
            }
        }
    }

    /// Appends a body at the contiguous offset, divided into chunks.
    ///
    /// Bytes that arrive before an interruption count, unless the append has a checksum or may get
    /// one.
    ///
    /// - Returns: The new contiguous offset; every byte below it is durable.
    /// - Throws: `OFFSET_MISMATCH`, `FILE_TOO_LARGE`, `LENGTH_MISMATCH`, `SIZE_MISMATCH` when
    ///   another size was declared, `CHUNK_HASH_MISMATCH` for a wrong checksum, `CHUNK_CONFLICT`,
    ///   `UPLOAD_IS_FINAL`, and the errors of ``putChunk(_:to:owner:body:)``.
    package func append(
        _ put: AppendPut, to id: SessionID, owner: OwnerID, body: some ByteBody
    ) async throws -> Int64 {
        try await admittingWrite(
            of: body, to: id, owner: owner, isEvictable: put.isResumable && !put.countsAtItsEnd
        ) { place in
            try await registry.withSession(id, owner: owner) { session in
                try await session.requireOwnBytes()
                return try await append(put, to: session, in: place, body: body)
            }
        }
    }

    /// Appends bytes from any source, without the limit of concurrent bodies.
    func append(
        _ put: AppendPut, to session: LiveSession, in place: WritePlace? = nil, body: some ByteBody
    ) async throws -> Int64 {
        try await writing(.append, of: session, in: place) { writer in
            let ledger = await session.ledger
            try self.validate(put, ledger, announced: body.announcedByteCount)
            let size = ledger.record.fileSize ?? put.declaredSize
            if let size, ledger.record.fileSize == nil {
                try await self.requireRoom(for: size, ledger, from: put.offset)
                // With a checksum, the size is set only after the checksum has matched.
                if !put.countsAtItsEnd { try await session.declareSize(size) }
            }
            let settings = self.configuration
            var limit = size ?? settings.maxFileSize
            if put.countsAtItsEnd { limit = min(limit, put.offset + settings.maxCheckedByteCount) }
            var appender = Appender(
                session: session, context: self.context, writer: writer, put: put, limit: limit)
            try await appender.run(try await body.makeReader())
            return await session.ledger.contiguousOffset
        }
    }

    private func validate(_ put: AppendPut, _ ledger: SessionLedger, announced: Int64?) throws {
        guard put.offset == ledger.contiguousOffset else {
            var error = EngineError(.offsetMismatch)
            error.expectedOffset = ledger.contiguousOffset
            throw error
        }
        if let declared = put.declaredSize {
            guard declared <= configuration.maxFileSize else { throw tooLarge() }
            guard declared >= ledger.claimedEnd, declared == ledger.record.fileSize ?? declared
            else {
                throw EngineError(
                    .sizeMismatch, "The file has another size than \(declared) bytes.")
            }
        }
        let (end, overflow) = put.offset.addingReportingOverflow(announced ?? 0)
        let limit = ledger.record.fileSize ?? put.declaredSize ?? configuration.maxFileSize
        guard !overflow, end <= limit else { throw tooLarge() }
        if put.countsAtItsEnd, end - put.offset > configuration.maxCheckedByteCount {
            var error = EngineError(.fileTooLarge, "A body with a checksum is larger than allowed.")
            error.maxBytes = configuration.maxCheckedByteCount
            throw error
        }
    }

    /// Refuses a file that cannot fit before more of it is sent, as session creation does.
    private func requireRoom(
        for size: Int64, _ ledger: SessionLedger, from offset: Int64
    ) async throws {
        let byteCount = context.roomNeeded(
            for: size - offset, chunkSize: ledger.record.chunkSize)
        try await context.space.reserving(byteCount, of: context.bytes) {}
    }
}
