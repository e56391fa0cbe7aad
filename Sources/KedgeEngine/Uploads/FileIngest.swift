internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Creates a file from one body. Nothing is kept when it fails.
struct FileIngest: Sendable {
    let sessions: SessionService
    let uploads: UploadService
    let finalizer: Finalizer

    /// Receives the body and waits for the file. A repeated use of a link gets the file of the
    /// first one if its body has the same bytes, which are read and compared, and not stored again.
    func run(
        _ new: NewSession, owner: OwnerID, expecting expected: SHA256Digest?,
        checksum: AppendChecksum?, body: some ByteBody
    ) async throws -> FileRecord {
        // A body without a place is refused before anything is written for it.
        let (id, isNew) = try await uploads.admission.admitting(
            body.origin, to: nil, owner: owner, isEvictable: false
        ) { place in
            let created = try await begin(new, owner: owner)
            let id = created.status.sessionId
            guard created.isNew else {
                let file = try await finish(id, owner: owner, expecting: nil)
                try await requireBytes(of: file, in: body)
                return (id, false)
            }
            try await givingUp(id, owner: owner) {
                var put = AppendPut(offset: 0, checksum: checksum, completes: true)
                put.isResumable = false
                try await uploads.append(put, toNew: id, owner: owner, in: place, body: body)
            }
            return (id, true)
        }
        guard isNew else { return try await finish(id, owner: owner, expecting: expected) }
        // Waits for the file, because the client has no id to ask for it again.
        return try await givingUp(id, owner: owner) {
            try await finish(id, owner: owner, expecting: expected)
        }
    }

    /// Refuses a body with other bytes than the file: an answer must not promise bytes that are
    /// not stored.
    ///
    /// - Throws: `LINK_EXPIRED`.
    private func requireBytes(of file: FileRecord, in body: some ByteBody) async throws {
        let used = EngineError(.linkExpired, "The link was used for another upload.")
        guard body.announcedByteCount ?? file.byteCount == file.byteCount else { throw used }
        let context = sessions.context
        let buffer = context.buffers.take()
        defer { context.buffers.give(buffer) }
        let reader = try await body.makeReader()
        var hasher = SHA256Hasher()
        var hasMore = true
        while hasMore {
            buffer.removeAll()
            hasMore = try await reader.fill(buffer, limit: buffer.capacity)
            hasher = await context.hash(buffer, after: hasher)
            guard hasher.byteCount <= file.byteCount else { throw used }
        }
        guard hasher.digest() == file.digest else { throw used }
    }

    private func finish(
        _ id: SessionID, owner: OwnerID, expecting expected: SHA256Digest?
    ) async throws -> FileRecord {
        try await finalizer.finish(
            id, owner: owner, expecting: expected, timeout: .seconds(24 * 3600))
    }

    /// Metadata of a session whose bytes one request sends.
    private static let wholeBodyKey = "kedge.files.whole"

    /// Creates the session of the body, or finds the one that a repeated use of a link has made.
    ///
    /// An open one is replaced if a request like this has made it, as the writer of a chunk is: no
    /// request continues its body, which may have ended with its connection or process. Bytes that
    /// another protocol continues stay.
    private func begin(_ new: NewSession, owner: OwnerID) async throws -> CreatedSession {
        var new = new
        // Only a repeated use of a link finds the session of another request.
        if new.permit.link != nil { new.metadata[Self.wholeBodyKey] = "1" }
        let created = try await sessions.create(new, owner: owner)
        guard !created.isNew, created.status.state == .open else { return created }
        guard try await isWholeBody(created.id, owner: owner) else {
            throw EngineError(.busy, "Another request sends the upload of this link.")
        }
        do {
            try await sessions.cancel(created.id, owner: owner)
        } catch let error as EngineError where error.code == .sessionClosed {
            // Completed meanwhile.
            return created
        }
        let second = try await sessions.create(new, owner: owner)
        // Yet another request was faster.
        guard second.isNew || second.status.state != .open else { throw EngineError(.busy) }
        return second
    }

    private func isWholeBody(_ id: SessionID, owner: OwnerID) async throws -> Bool {
        try await sessions.registry.withSession(id, owner: owner) { session in
            await session.ledger.record.metadata[Self.wholeBodyKey] != nil
        }
    }

    /// Cancels the session when the closure throws.
    private func givingUp<Result>(
        _ id: SessionID, owner: OwnerID, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch {
            await sessions.discard(id, owner: owner)
            throw error
        }
    }
}
