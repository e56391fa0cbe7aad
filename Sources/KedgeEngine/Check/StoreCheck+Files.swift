internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Bytes of a blob with the chunk list that describes them.
struct BlobContent {
    /// The id that findings about them carry.
    let id: String
    let blob: BlobName
    let layout: ChunkLayout
    /// The session that owns the chunk list.
    let session: SessionID
}

/// The result of reading a blob. Files of one blob are checked in sequence, so the next file can
/// reuse it.
struct BlobCheckResult {
    let content: BlobContent
    /// The findings, about ``content``'s id.
    var findings: [CheckFinding] = []

    /// True when bytes and chunk list are known to be right.
    var isGood: Bool { findings.isEmpty }
    /// The findings about the bytes themselves, which hold for every file of the blob.
    var blobFindings: [CheckFinding] {
        findings.filter { $0.kind == .blobDamaged || $0.kind == .bytesUnreadable }
    }
}

extension StoreCheck {
    /// Checks one file: its chunk list, its blob, and with a scrubber the blob's bytes.
    ///
    /// - Parameter earlier: The result for the blob of the previous file.
    /// - Returns: The result to pass for the next file; nil when the blob is missing or has the
    ///   wrong size.
    func check(_ file: FileRecord, after earlier: BlobCheckResult?) async throws -> BlobCheckResult?
    {
        let content = BlobContent(
            id: file.id.text, blob: file.blob,
            layout: ChunkLayout(fileSize: file.byteCount, chunkSize: file.chunkSize),
            session: file.sessionID)
        let isListed = try await hasWholeList(content)
        if !isListed {
            try await report(
                CheckFinding(.chunkListWrong, content.id, "the rows do not list each chunk once"),
                about: file)
        }
        if let finding = try await sizeFinding(about: file) {
            try await report(finding, about: file)
            return nil
        }
        guard isListed else { return earlier }
        let result = try await checkResult(of: content, after: earlier)
        for finding in result.findings { try await report(finding, about: file) }
        return result
    }

    private func sizeFinding(about file: FileRecord) async throws -> CheckFinding? {
        guard let byteCount = try await bytes.byteCount(of: file.blob) else {
            return CheckFinding(
                .blobMissing, file.id.text,
                "blob \(file.digest) is missing; upload the same file again to repair it")
        }
        guard byteCount != file.byteCount else { return nil }
        return CheckFinding(
            .blobSizeWrong, file.id.text,
            "blob \(file.digest) has \(byteCount) bytes instead of \(file.byteCount)"
                + "; upload the same file again to repair it")
    }

    /// Reports a finding, unless another process has deleted the file since. With repairs, marks a
    /// damaged file first; it stays a fault until the same bytes are uploaded again.
    private func report(_ finding: CheckFinding, about file: FileRecord) async throws {
        if bytes.isShared, try await rows.liveFile(file.id) == nil { return }
        if let repairs, finding.kind.isDamagedBlob {
            _ = try await repairs.metadata.markDamaged(file, at: repairs.clock.now())
        }
        tally.report(finding)
    }

    private func checkResult(
        of content: BlobContent, after earlier: BlobCheckResult?
    ) async throws -> BlobCheckResult {
        guard let earlier, earlier.content.blob == content.blob else {
            return try await scrubbed(content)
        }
        if !earlier.blobFindings.isEmpty {
            var result = BlobCheckResult(content: content, findings: earlier.blobFindings)
            for index in result.findings.indices { result.findings[index].id = content.id }
            return result
        }
        if earlier.isGood, try await hasSameChunks(earlier.content, content) {
            return BlobCheckResult(content: content)
        }
        return try await scrubbed(content)
    }

    /// Reads a blob whose size is right; returns no findings without a scrubber.
    func scrubbed(_ content: BlobContent) async throws -> BlobCheckResult {
        guard let scrubber else { return BlobCheckResult(content: content) }
        let findings = try await reading(content.id) {
            try await lending(try await bytes.open(content.blob)) {
                try await hashedFindings(in: content, reader: $0, scrubber)
            }
        }
        return BlobCheckResult(content: content, findings: findings)
    }

    private func hashedFindings(
        in content: BlobContent, reader: any BlobReader, _ scrubber: ByteScrubber
    ) async throws -> [CheckFinding] {
        var wrong = ChunkSet()
        var hashes = RunningHashes(wholeEnd: content.layout.fileSize ?? 0)
        try await forEachChunk(of: content.session) { chunk in
            guard let range = content.layout.range(ofChunk: chunk.index) else { return }
            hashes = try await scrubber.hash(range, of: reader, hashes, countingIn: tally)
            if hashes.range.digest() != chunk.digest { wrong.insert(chunk.index) }
        }
        if hashes.whole?.digest() != content.blob.digest {
            return [
                CheckFinding(
                    .blobDamaged, content.id,
                    "blob \(content.blob.digest) does not match its SHA-256", chunks: wrong)
            ]
        }
        guard wrong.count > 0 else { return [] }
        return [
            CheckFinding(
                .chunkListWrong, content.id,
                "the file is intact, but \(wrong.count) digests of its chunk list do not match it",
                chunks: wrong)
        ]
    }

    /// True when the rows have exactly the chunks of the layout.
    private func hasWholeList(_ content: BlobContent) async throws -> Bool {
        var next = 0
        var fits = true
        try await forEachChunk(of: content.session) { chunk in
            let range = content.layout.range(ofChunk: chunk.index)
            if chunk.index != next || range?.byteCount != chunk.byteCount { fits = false }
            next += 1
        }
        return fits && next == content.layout.chunkCount
    }

    /// True when two files have the same layout and equal chunk lists.
    private func hasSameChunks(_ left: BlobContent, _ right: BlobContent) async throws -> Bool {
        guard left.layout == right.layout else { return false }
        var next = 0
        while true {
            let page = try await rows.chunks(of: left.session, from: next, limit: Self.pageSize)
            let other = try await rows.chunks(of: right.session, from: next, limit: Self.pageSize)
            guard page == other else { return false }
            guard let last = page.last else { return true }
            next = last.index + 1
        }
    }
}
