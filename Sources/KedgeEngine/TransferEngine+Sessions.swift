internal import KedgeFiles
package import KedgeModel
internal import Logging

/// The parameters of a new session.
package struct NewSession: Sendable {
    package var fileName: String
    package var fileSize: Int64?
    package var mimeType: String?
    /// Preferred chunk size in bytes, above zero; nil for the default. The session gets the nearest
    /// size within the limits at which the file does not have too many chunks.
    package var chunkSize: Int64?
    package var declaredDigest: SHA256Digest?
    package var metadata: [String: String]
    /// The partial uploads of a final upload, in order and of the same owner; nil for a session
    /// that takes bytes from clients.
    package var parts: [SessionID]?
    package var adopting: SessionID?
    /// The client's address; nil when unknown.
    package var client: ClientAddress?

    package init(
        fileName: String, fileSize: Int64?, mimeType: String? = nil, chunkSize: Int64? = nil,
        declaredDigest: SHA256Digest? = nil, metadata: [String: String] = [:],
        parts: [SessionID]? = nil, adopting: SessionID? = nil, client: ClientAddress? = nil
    ) {
        self.fileName = fileName
        self.fileSize = fileSize
        self.mimeType = mimeType
        self.chunkSize = chunkSize
        self.declaredDigest = declaredDigest
        self.metadata = metadata
        self.parts = parts
        self.adopting = adopting
        self.client = client
    }
}

extension TransferEngine {
    /// Prefix of the metadata keys that are reserved for front ends; clients cannot set them.
    package static let reservedMetadataPrefix = "kedge."

    /// Creates a session, or returns the one created before by the same key and request.
    package func createSession(
        _ new: NewSession, owner: OwnerID, idempotencyKey: IdempotencyKey? = nil
    ) async throws -> SessionStatus {
        try await translating {
            var new = new
            new.fileName = FileName.replacingUnfit(new.fileName)
            let chunkSize = try validate(new)
            let id: SessionID = context.makeID()
            let now = context.clock.now()
            let record = SessionRecord(
                id: id, owner: owner, stagingKey: StagingKey(id), fileName: new.fileName,
                mimeType: new.mimeType, fileSize: new.fileSize, chunkSize: chunkSize,
                declaredDigest: new.declaredDigest, metadata: new.metadata, parts: new.parts,
                state: .open, createdAt: now,
                // A final upload waits for the bytes of its partial uploads.
                expiresAt: new.parts == nil ? context.firstExpiry : context.nextExpiry)
            // The old session's writers stop first, because the new session may adopt its bytes.
            if let adopted = new.adopting { await registry.dropExpired(adopted, owner: owner) }
            let outcome = try await context.metadata.createSession(
                record, idempotencyKey: idempotencyKey, adopting: new.adopting, in: room(for: new))
            switch outcome {
            case .created(let record):
                return try await begin(record, new)
            case .createdInstead(let record, let ended):
                await registry.drop(ended)
                context.logger.debug(
                    "empty session evicted", metadata: ["session.id": "\(ended)"])
                await garbageCollector.collectGarbageSoon()
                return try await begin(record, new)
            case .full:
                throw EngineError(.tooManySessions)
            case .partUsedUp:
                let limit = configuration.maxConcatenationsPerPartialUpload
                throw EngineError(
                    .badRequest, "An upload can be used in at most \(limit) final uploads.")
            case .replayed(let record):
                return try await sessionStatus(record.id, owner: owner)
            case .keyConflict:
                throw EngineError(.idempotencyConflict)
            }
        }
    }

    private func room(for new: NewSession) -> SessionRoom {
        SessionRoom(
            maxOpenCount: configuration.maxOpenSessions, client: new.client?.network,
            // Partial uploads of the new session must not make room for it either.
            busy: context.busySessions.ids.union(new.parts ?? []),
            maxConcatenationCount: configuration.maxConcatenationsPerPartialUpload)
    }

    /// Completes the creation of a session after its row was inserted.
    private func begin(_ record: SessionRecord, _ new: NewSession) async throws -> SessionStatus {
        if new.adopting == nil {
            try await requireRoom(for: record)
        } else if record.stagingKey != StagingKey(record.id) {
            // It has the adopted bytes from the start.
            try await registry.withSession(record.id, owner: record.owner) {
                try await $0.stayAlive()
            }
        }
        return try await sessionStatus(record.id, owner: record.owner)
    }

    /// Returns the session's status.
    ///
    /// - Parameter withDigests: Whether the status includes the digests of the received bytes.
    /// - Throws: `SESSION_NOT_FOUND`, `SESSION_EXPIRED`.
    package func sessionStatus(
        _ id: SessionID, owner: OwnerID, withDigests: Bool = false
    ) async throws -> SessionStatus {
        try await translating {
            try await registry.withSession(id, owner: owner) {
                try await $0.currentStatus(withDigests: withDigests)
            }
        }
    }

    /// Cancels a session: stops its writers and removes its bytes. Idempotent.
    ///
    /// - Throws: `SESSION_CLOSED` when it is completed: delete the file instead.
    package func cancelSession(_ id: SessionID, owner: OwnerID) async throws {
        try await translating {
            try await finalizer.withoutFinalize(of: id) {
                try await context.metadata.cancelSession(id, owner: owner)
                await registry.drop(id, ofOwner: owner)
            }
        }
        await garbageCollector.collectGarbageSoon()
    }

    /// Cancels a session that no client will resume. A failure is only logged.
    package func giveUp(_ id: SessionID, owner: OwnerID) async {
        do {
            try await cancelSession(id, owner: owner)
        } catch {
            // The sweep removes it when it expires.
            context.logger.warning(
                "cancellation of a failed upload failed",
                metadata: ["error": "\(String(reflecting: error))"])
        }
    }

    /// Refuses a file that cannot fit before any of it is sent. Runs after the row was inserted,
    /// because the bytes of a replayed or an adopting request are on this disk already.
    private func requireRoom(for record: SessionRecord) async throws {
        do {
            let byteCount = context.roomNeeded(
                for: record.fileSize ?? 0, chunkSize: record.chunkSize)
            try await context.space.reserving(byteCount, of: context.bytes) {}
        } catch {
            try await context.metadata.cancelSession(record.id, owner: record.owner)
            throw error
        }
    }

    private func validate(_ new: NewSession) throws -> Int64 {
        guard FileName.isValid(new.fileName) else {
            throw EngineError(
                .badRequest,
                "fileName must be 1 to \(FileName.maxByteCount) bytes without path separators.")
        }
        if let mimeType = new.mimeType, !Self.isPlausible(mimeType: mimeType) {
            throw EngineError(.badRequest, "mimeType is not a media type.")
        }
        // Metadata of front ends has limits of its own.
        let metadataByteCount = new.metadata.reduce(0) { sum, entry in
            entry.key.hasPrefix(Self.reservedMetadataPrefix)
                ? sum : sum + entry.key.utf8.count + entry.value.utf8.count
        }
        guard metadataByteCount <= configuration.maxMetadataByteCount else {
            throw EngineError(
                .badRequest, "metadata is larger than \(configuration.maxMetadataByteCount) bytes.")
        }
        if let parts = new.parts {
            guard !parts.isEmpty, parts.count <= configuration.maxPartCount,
                Set(parts).count == parts.count
            else {
                throw EngineError(
                    .badRequest,
                    "A final upload needs 1 to \(configuration.maxPartCount) different uploads.")
            }
        }
        if let size = new.fileSize {
            guard size >= 0 else { throw EngineError(.badRequest, "fileSize is negative.") }
            guard size <= configuration.maxFileSize else { throw context.tooLarge() }
        }
        let wish = new.chunkSize ?? configuration.defaultChunkSize
        guard wish > 0 else { throw EngineError(.badRequest, "chunkSize is not positive.") }
        let sizes = configuration.chunkSizes
        let preferred = min(max(wish, sizes.lowerBound), sizes.upperBound)
        let largest = new.fileSize ?? configuration.maxFileSize
        let doubled = ChunkLayout.chunkSize(
            preferred: preferred < configuration.minStoredChunkSize
                ? configuration.defaultChunkSize : preferred,
            forFileOf: largest, maxChunkCount: configuration.maxChunkCount)
        // Doubling may exceed an upper limit that would have been enough.
        let upper = sizes.upperBound
        return doubled > upper && configuration.fits(largest, inChunksOf: upper) ? upper : doubled
    }

    /// Whether the text is `type/subtype` of token characters, with parameters of printable ASCII
    /// (RFC 9110 section 8.3.1).
    static func isPlausible(mimeType: String) -> Bool {
        guard mimeType.utf8.count <= 255,
            mimeType.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { return false }
        let essence = mimeType.prefix { $0 != ";" }
        let parts = essence.split(separator: "/", omittingEmptySubsequences: false)
        let isToken: (Substring) -> Bool = { text in
            !text.isEmpty
                && text.utf8.allSatisfy { character in
                    Unicode.Scalar(character).properties.isAlphabetic
                        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character)
                        || "!#$%&'*+-.^_`|~".utf8.contains(character)
                }
        }
        return parts.count == 2 && parts.allSatisfy(isToken)
    }
}
