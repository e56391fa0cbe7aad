internal import KedgeModel

/// The bytes of uploads: receives them from clients and shows how far they are.
struct UploadService: Sendable {
    let context: EngineContext
    let registry: SessionRegistry
    let sessionWriter: SessionWriter
    let admission: BodyAdmission

    /// Receives one chunk, or a part of one.
    func putChunk(
        _ put: ChunkPut, to id: SessionID, owner: OwnerID, body: some ByteBody
    ) async throws -> ChunkPutOutcome {
        // With a digest of the body alone, the client must send the whole body again.
        let outcome = try await admission.admitting(
            body.origin, to: id, owner: owner, isEvictable: !put.isBodyDigest
        ) { place in
            try await registry.withSession(id, owner: owner) { session in
                try await session.requireOwnBytes()
                return try await sessionWriter.put(put, to: session, in: place, body: body)
            }
        }
        if case .created = outcome { try await awaitHash(of: id, owner: owner) }
        return outcome
    }

    /// Delays the acknowledgement while the whole-file hash lags too far behind, which bounds the
    /// time of finalize. Holds no writer slot, so only this client waits.
    private func awaitHash(of id: SessionID, owner: OwnerID) async throws {
        let settings = context.configuration
        try await translating {
            try await registry.withSession(id, owner: owner) { session in
                let floor = await session.ledger.committedPrefixEnd - settings.maxHashLag
                guard floor > 0, await session.prefix.offset < floor else { return }
                do {
                    _ = try await session.prefix.wait(
                        for: floor, timeout: settings.finalizeTimeout, stopsAtDamage: true)
                } catch is DamagedChunks {
                    // This chunk is durable; finalize reports the damaged ones.
                }
            }
        }
    }

    /// Returns the offset at which an append continues.
    func contiguousOffset(of id: SessionID, owner: OwnerID) async throws -> Int64 {
        try await translating {
            try await registry.withSession(id, owner: owner) {
                try await $0.requireOpen()
                return await $0.ledger.contiguousOffset
            }
        }
    }

    /// Appends a body at the contiguous offset, divided into chunks.
    func append(
        _ put: AppendPut, to id: SessionID, owner: OwnerID, body: some ByteBody
    ) async throws -> Int64 {
        try await admission.admitting(
            body.origin, to: id, owner: owner,
            isEvictable: put.isResumable && !put.countsAtItsEnd
        ) { place in
            try await registry.withSession(id, owner: owner) { session in
                try await session.requireOwnBytes()
                return try await sessionWriter.append(put, to: session, in: place, body: body)
            }
        }
    }

    /// Appends a body that has its place already to the session that was created for it.
    func append(
        _ put: AppendPut, toNew id: SessionID, owner: OwnerID, in place: WritePlace,
        body: some ByteBody
    ) async throws {
        _ = try await registry.withSession(id, owner: owner) { session in
            try await sessionWriter.append(put, to: session, in: place, body: body)
        }
    }

    /// Returns the upload's current state.
    ///
    /// - Parameter stopsAppend: Whether to stop an append under way first.
    func view(of id: SessionID, owner: OwnerID, stopsAppend: Bool) async throws -> UploadView {
        try await translating {
            try await registry.withSession(id, owner: owner) { session in
                if stopsAppend { try await stopAppend(to: session) }
                return try await session.uploadView()
            }
        }
    }

    /// Takes the slot of the append under way and releases it. On another node, the append is the
    /// writer of the chunk in which the contiguous bytes end.
    private func stopAppend(to session: LiveSession) async throws {
        do {
            try await sessionWriter.writing(.append, of: session) { [context] writer in
                guard context.fleet != nil else { return }
                var stopped: Int?
                // During the claim, the chunk may be committed and the next one begun.
                while let index = await session.ledger.appendIndex, index != stopped {
                    let placeholder = try await session.claimChunk(index, stopping: writer)
                    await session.release(.chunk(index), placeholder)
                    stopped = index
                }
            }
        } catch let error as EngineError where error.code == .sessionClosed {
            // A session that is not open has no writer; the view shows its state.
            return
        }
    }

    /// Refuses new bodies, stops those under way and saves their bytes as partials.
    func interruptWriters() async {
        context.drain.begin()
        for session in await registry.sessions {
            await session.interruptWriters(.draining)
        }
    }
}
