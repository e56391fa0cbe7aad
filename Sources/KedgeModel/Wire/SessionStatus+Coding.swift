extension SessionStatus: Codable {
    /// Names of the members on the wire.
    enum CodingKeys: String, CodingKey {
        case sessionId, state, fileName, fileSize, chunkSize, totalChunks
        case receivedChunks, receivedDigests, receivedRanges, receivedBytes, partialChunks
        case expiresAt, fileHashSha256, remoteFileId, limits, storedFiles
    }

    /// Encodes every member; `text(_:)` can be shorter.
    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(sessionId, forKey: .sessionId)
        try members.encode(state, forKey: .state)
        try members.encode(fileName, forKey: .fileName)
        try members.encodeIfPresent(fileSize, forKey: .fileSize)
        try members.encode(chunkSize, forKey: .chunkSize)
        try members.encodeIfPresent(totalChunks, forKey: .totalChunks)
        try members.encode(receivedChunks, forKey: .receivedChunks)
        try members.encodeIfPresent(receivedDigests, forKey: .receivedDigests)
        try members.encode(receivedRanges, forKey: .receivedRanges)
        try members.encode(receivedBytes, forKey: .receivedBytes)
        try members.encode(partialChunks, forKey: .partialChunks)
        try members.encode(expiresAt, forKey: .expiresAt)
        try members.encodeIfPresent(fileHashSha256, forKey: .fileHashSha256)
        try members.encodeIfPresent(remoteFileId, forKey: .remoteFileId)
        try members.encodeIfPresent(limits, forKey: .limits)
        try members.encodeIfPresent(storedFiles, forKey: .storedFiles)
    }

    /// Decodes either form: the ranges if present, otherwise the list of chunks.
    ///
    /// Ignores chunk indexes that no file can have.
    ///
    /// - Throws: `DecodingError`, also for ranges that are not in rising order.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            sessionId: try members.decode(SessionID.self, forKey: .sessionId),
            state: try members.decode(SessionState.self, forKey: .state),
            fileName: try members.decode(String.self, forKey: .fileName),
            fileSize: try members.decodeIfPresent(Int64.self, forKey: .fileSize),
            chunkSize: try members.decode(Int64.self, forKey: .chunkSize),
            totalChunks: try members.decodeIfPresent(Int.self, forKey: .totalChunks),
            received: try Self.received(in: members),
            receivedBytes: try members.decode(Int64.self, forKey: .receivedBytes),
            partialChunks: try members.decode([PartialChunk].self, forKey: .partialChunks),
            expiresAt: try members.decode(Timestamp.self, forKey: .expiresAt),
            fileHashSha256: try members.decodeIfPresent(
                SHA256Digest.self, forKey: .fileHashSha256),
            remoteFileId: try members.decodeIfPresent(FileID.self, forKey: .remoteFileId),
            limits: try members.decodeIfPresent(SessionLimits.self, forKey: .limits),
            storedFiles: try members.decodeIfPresent([StoredFile].self, forKey: .storedFiles))
        receivedDigests = try members.decodeIfPresent(
            [SHA256Digest].self, forKey: .receivedDigests)
    }

    private static func received(
        in members: KeyedDecodingContainer<CodingKeys>
    ) throws -> ChunkSet {
        let end = ChunkLayout.maxChunkCount
        guard let runs = try members.decodeIfPresent([[Int]].self, forKey: .receivedRanges) else {
            let indexes = try members.decode([Int].self, forKey: .receivedChunks)
            return ChunkSet(indexes.filter { (0..<end).contains($0) })
        }
        var received = ChunkSet()
        var previous: Int?
        for run in runs {
            // Overlapping ranges would let a few bytes cause a lot of work.
            guard run.count == 2, run[0] <= run[1], previous.map({ $0 < run[0] }) ?? true else {
                throw DecodingError.dataCorruptedError(
                    forKey: .receivedRanges, in: members,
                    debugDescription: "runs are [first, last] in rising order")
            }
            previous = run[1]
            for index in stride(from: max(run[0], 0), through: min(run[1], end - 1), by: 1) {
                received.insert(index)
            }
        }
        return received
    }
}
