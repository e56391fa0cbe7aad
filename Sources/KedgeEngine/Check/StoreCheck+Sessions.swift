internal import KedgeModel

extension StoreCheck {
    /// Checks one session that has bytes in a staging area.
    func check(_ session: SessionRecord) async throws {
        if session.state == .finalizing, try await checkPromoted(session) { return }
        let stored = StoredBytes.staging(session.stagingKey)
        let byteCount = try await bytes.byteCount(of: stored)
        var claims = SessionClaims(session, stagingByteCount: byteCount)
        try await forEachChunk(of: session.id) { claims.add($0) }
        try await forEachPartial(of: session.id) { claims.add($0) }
        var findings = claims.findings
        if let scrubber, let byteCount, byteCount > 0 {
            findings += try await reading(session.id.text) {
                try await withReader(of: stored) {
                    try await SessionScrub(
                        check: self, scrubber: scrubber, session: session, claims: claims,
                        reader: $0
                    ).findings()
                }
            }
        }
        for finding in findings { tally.report(try await repaired(finding, of: session)) }
    }

    /// A session that was stopped between the rename and its last row has its bytes in the blob, and
    /// the next start of the service finishes it.
    ///
    /// - Returns: True when the bytes are there.
    private func checkPromoted(_ session: SessionRecord) async throws -> Bool {
        guard let digest = session.finalDigest, let size = session.fileSize,
            try await bytes.byteCount(of: .blob(digest)) == size
        else { return false }
        let content = BlobContent(
            id: session.id.text, digest: digest, layout: session.layout, session: session.id)
        for finding in try await scrubbed(content).findings { tally.report(finding) }
        return true
    }

    /// Takes back what cannot be trusted, so that the client sends it again. Only of open sessions: of
    /// others nobody would send anything.
    private func repaired(
        _ finding: CheckFinding, of session: SessionRecord
    ) async throws -> CheckFinding {
        guard let metadata = repairs?.metadata, session.state == .open else { return finding }
        var finding = finding
        let indexes = finding.chunks.flatMap { Array($0) }
        switch finding.kind {
        case .stagingMissing, .stagingShort, .chunkDamaged:
            try await metadata.dropChunks(indexes, of: session.id)
        case .partialDamaged:
            for index in indexes { try await metadata.discardPartial(of: session.id, index: index) }
        case .prefixDamaged:
            // It goes together with the partials; both cost reading or sending again, no more.
            try await metadata.dropChunks([], of: session.id)
        default:
            return finding
        }
        finding.isRepaired = true
        finding.detail += "; taken back, the client sends it again"
        return finding
    }

    /// Hands out the chunks of a session, by rising index.
    func forEachChunk(
        of id: SessionID, _ body: (CommittedChunk) async throws -> Void
    ) async throws {
        var next = 0
        while true {
            let page = try await rows.chunks(of: id, from: next, limit: Self.pageSize)
            for chunk in page { try await body(chunk) }
            guard let last = page.last else { return }
            next = last.index + 1
        }
    }

    /// Hands out the partials of a session, by rising index.
    func forEachPartial(
        of id: SessionID, _ body: (PartialRecord) async throws -> Void
    ) async throws {
        var next = 0
        while true {
            let page = try await rows.partials(of: id, from: next, limit: Self.pageSize)
            for partial in page { try await body(partial) }
            guard let last = page.last else { return }
            next = last.index + 1
        }
    }

    /// Turns bytes that the disk cannot give into a finding, so that the check goes on with the others.
    /// Nothing is repaired then: the disk may give them another time.
    func reading(
        _ id: String, _ body: () async throws -> [CheckFinding]
    ) async throws -> [CheckFinding] {
        do {
            return try await body()
        } catch is ByteStoreError {
            return [CheckFinding(.bytesUnreadable, id, "the disk fails to read the bytes")]
        }
    }
}
