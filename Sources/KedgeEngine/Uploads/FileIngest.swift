internal import KedgeModel

/// Creates a file from one body. Nothing is kept when it fails.
struct FileIngest: Sendable {
    let sessions: SessionService
    let uploads: UploadService
    let finalizer: Finalizer

    /// Receives the body and waits for the file.
    func run(
        _ new: NewSession, owner: OwnerID, expecting expected: SHA256Digest?,
        checksum: AppendChecksum?, body: some ByteBody
    ) async throws -> FileRecord {
        // A body without a place is refused before anything is written for it.
        let id = try await uploads.admission.admitting(
            body.origin, to: nil, owner: owner, isEvictable: false
        ) { place in
            let id = try await sessions.create(new, owner: owner).sessionId
            try await givingUp(id, owner: owner) {
                var put = AppendPut(offset: 0, checksum: checksum, completes: true)
                put.isResumable = false
                try await uploads.append(put, toNew: id, owner: owner, in: place, body: body)
            }
            return id
        }
        // Waits for the file, because the client has no id to ask for it again.
        return try await givingUp(id, owner: owner) {
            try await finalizer.finish(
                id, owner: owner, expecting: expected, timeout: .seconds(24 * 3600))
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
