internal import KedgeModel

extension StoreCheck {
    /// Checks one session that has bytes in a staging area.
    func check(_ session: SessionRecord) async throws {
        var session = session
        var findings = try await findings(about: session)
        // Another process may have finished or cancelled it during the check.
        if bytes.isShared, findings.contains(where: { !$0.isNotice }) {
            guard let now = try await rows.sessionWithBytes(session.id) else { return }
            session = now
            findings = try await self.findings(about: session)
        }
        for finding in findings { tally.report(try await repaired(finding, of: session)) }
    }

    private func findings(about session: SessionRecord) async throws -> [CheckFinding] {
        if session.state == .finalizing, let found = try await findingsAboutBlob(of: session) {
            return found
        }
        let staging = try await bytes.staging(of: session)
        let claims = try await claims(of: session, on: staging)
        var findings = claims.findings
        guard !claims.isEmpty else { return findings }
        if !staging.isListed { findings.append(claims.uncheckedFinding(isListed: false)) }
        guard let scrubber else { return findings }
        findings += try await reading(session.id.text) {
            guard let reader = try await staging.open(first: claims.first) else {
                return staging.isListed ? [claims.uncheckedFinding(isListed: true)] : []
            }
            return try await lending(reader) {
                try await SessionScrub(
                    check: self, scrubber: scrubber, session: session, claims: claims, reader: $0
                ).findings()
            }
        }
        return findings
    }

    /// Reads the rows before it asks for the bytes: bytes that a row records stay stored from then
    /// on.
    private func claims(
        of session: SessionRecord, on staging: any CheckedStaging
    ) async throws -> SessionClaims {
        var claims = SessionClaims(session, isPresent: staging.isPresent)
        try await forEachChunkPage(of: session.id) { page in
            let missing = try await staging.missing(of: page)
            for chunk in page { claims.add(chunk, isCovered: !missing.contains(chunk.index)) }
        }
        try await forEachPartialPage(of: session.id) { page in
            let missing = try await staging.missing(of: page)
            for partial in page { claims.add(partial, isCovered: !missing.contains(partial.index)) }
        }
        return claims
    }

    /// Checks the blob of a session that stopped between the rename and its last row. The next
    /// start of the service finishes such a session. Applies only to blobs named by their digest;
    /// other blobs are still the session's staging area.
    ///
    /// - Returns: Nil when the bytes are not there.
    private func findingsAboutBlob(of session: SessionRecord) async throws -> [CheckFinding]? {
        guard let digest = session.finalDigest, let size = session.fileSize else { return nil }
        let blob = BlobName(digest: digest, byteCount: size)
        guard try await bytes.byteCount(of: blob) == size else { return nil }
        let content = BlobContent(
            id: session.id.text, blob: blob, layout: session.layout, session: session.id)
        return try await scrubbed(content).findings
    }

    /// Invalidates what cannot be trusted, so that the client sends it again. Only for open
    /// sessions: clients send nothing to closed ones.
    private func repaired(
        _ finding: CheckFinding, of session: SessionRecord
    ) async throws -> CheckFinding {
        guard let metadata = repairs?.metadata, session.state == .open else { return finding }
        var finding = finding
        let indexes = finding.chunks.flatMap { Array($0) }
        switch finding.kind {
        case .stagingMissing, .stagingShort, .chunkDamaged:
            try await metadata.invalidateChunks(indexes, of: session.id)
        case .partialDamaged:
            for index in indexes {
                try await metadata.discardPartial(of: session.id, index: index, by: nil)
            }
        case .prefixDamaged:
            // Drops the partials, too. Both cost only reading or sending again.
            try await metadata.invalidateChunks([], of: session.id)
        default:
            return finding
        }
        finding.isRepaired = true
        finding.detail += "; invalidated, the client sends it again"
        return finding
    }

    /// Calls the closure with each chunk of a session, by rising index.
    func forEachChunk(
        of id: SessionID, _ body: (CommittedChunk) async throws -> Void
    ) async throws {
        try await forEachChunkPage(of: id) { page in
            for chunk in page { try await body(chunk) }
        }
    }

    private func forEachChunkPage(
        of id: SessionID, _ body: ([CommittedChunk]) async throws -> Void
    ) async throws {
        var next = 0
        while true {
            let page = try await rows.chunks(of: id, from: next, limit: Self.pageSize)
            guard let last = page.last else { return }
            try Task.checkCancellation()
            try await body(page)
            next = last.index + 1
        }
    }

    /// Calls the closure with each partial of a session, by rising index.
    func forEachPartial(
        of id: SessionID, _ body: (PartialRecord) async throws -> Void
    ) async throws {
        try await forEachPartialPage(of: id) { page in
            for partial in page { try await body(partial) }
        }
    }

    private func forEachPartialPage(
        of id: SessionID, _ body: ([PartialRecord]) async throws -> Void
    ) async throws {
        var next = 0
        while true {
            let page = try await rows.partials(of: id, from: next, limit: Self.pageSize)
            guard let last = page.last else { return }
            try Task.checkCancellation()
            try await body(page)
            next = last.index + 1
        }
    }

    /// Turns an error of the store into a finding, so that the check continues. Such a finding is
    /// not repaired: the store may return the bytes another time.
    func reading(
        _ id: String, _ body: () async throws -> [CheckFinding]
    ) async throws -> [CheckFinding] {
        do {
            return try await body()
        } catch is ByteStoreError {
            // A cancelled request to a bucket fails like any other.
            try Task.checkCancellation()
            return [CheckFinding(.bytesUnreadable, id, "the bytes cannot be read")]
        }
    }
}
