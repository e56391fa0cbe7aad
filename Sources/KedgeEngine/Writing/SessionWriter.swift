internal import KedgeModel

/// Writes to sessions: runs each write in a task that can be stopped, receives native chunks, and
/// appends bytes of any source.
struct SessionWriter: Sendable {
    let context: EngineContext
    /// The places of bodies from clients.
    let places: WritePlaces

    /// Runs a write in a task of its own, so that another writer, a cancel or a shutdown can stop
    /// it without cancelling the caller.
    func writing<Result: Sendable>(
        _ slot: WriterSlot, of session: LiveSession, in place: WritePlace? = nil,
        _ body: @escaping @Sendable (ActiveWriter) async throws -> Result
    ) async throws -> Result {
        let writer = ActiveWriter()
        context.busySessions.enter(session.id)
        defer { context.busySessions.leave(session.id) }
        place?.attach(writer)
        do {
            try await session.claim(slot, for: writer)
        } catch {
            writer.finish()
            throw error
        }
        // Awaited below; cancelled by this task or through the writer.
        let task = Task { try await body(writer) }
        writer.attach { task.cancel() }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        await session.release(slot, writer)
        do {
            return try result.get()
        } catch is CancellationError {
            // Stopped while it read; the interruption has the reason.
            throw writer.interruption?.error ?? CancellationError()
        }
    }

    /// Runs a read of the session's staging area. It is stopped like a write before the area
    /// closes.
    func reading(
        _ session: LiveSession, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        try await writing(.reading(context.makeID()), of: session) { _ in try await body() }
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
            let settings = self.context.configuration
            var limit = size ?? self.context.maxFileSize(of: ledger.record)
            if put.countsAtItsEnd { limit = min(limit, put.offset + settings.maxCheckedByteCount) }
            var appender = Appender(
                session: session, context: self.context, writer: writer, put: put, limit: limit)
            try await appender.run(try await body.makeReader())
            return await session.ledger.contiguousOffset
        }
    }

    private func validate(_ put: AppendPut, _ ledger: SessionLedger, announced: Int64?) throws {
        guard put.offset == ledger.contiguousOffset else {
            throw EngineError.offsetMismatch(expected: ledger.contiguousOffset)
        }
        let maxFileSize = context.maxFileSize(of: ledger.record)
        if let declared = put.declaredSize {
            guard declared <= maxFileSize else {
                throw EngineError.tooLarge(maxBytes: maxFileSize)
            }
            guard declared >= ledger.claimedEnd, declared == ledger.record.fileSize ?? declared
            else {
                throw EngineError(
                    .sizeMismatch, "The size of the file is not \(declared) bytes.")
            }
            if let refusal = ledger.record.refusal(ofSize: declared) { throw refusal }
        }
        let (end, overflow) = put.offset.addingReportingOverflow(announced ?? 0)
        let limit = ledger.record.fileSize ?? put.declaredSize ?? maxFileSize
        guard !overflow, end <= limit else { throw EngineError.tooLarge(maxBytes: maxFileSize) }
        if put.countsAtItsEnd, end - put.offset > context.configuration.maxCheckedByteCount {
            throw EngineError.tooLarge(
                "The body is too large for a request with a checksum.",
                maxBytes: context.configuration.maxCheckedByteCount)
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
