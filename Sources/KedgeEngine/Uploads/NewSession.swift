package import KedgeModel

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
    package var sourceIDs: [SessionID]?
    package var adopting: SessionID?
    /// The client's address; nil when unknown.
    package var client: ClientAddress?
    /// The permission by which the session is created.
    package var permit = UploadPermit()

    package init(
        fileName: String, fileSize: Int64?, mimeType: String? = nil, chunkSize: Int64? = nil,
        declaredDigest: SHA256Digest? = nil, metadata: [String: String] = [:],
        sourceIDs: [SessionID]? = nil, adopting: SessionID? = nil, client: ClientAddress? = nil
    ) {
        self.fileName = fileName
        self.fileSize = fileSize
        self.mimeType = mimeType
        self.chunkSize = chunkSize
        self.declaredDigest = declaredDigest
        self.metadata = metadata
        self.sourceIDs = sourceIDs
        self.adopting = adopting
        self.client = client
    }
}

extension NewSession {
    /// Prefix of the metadata keys that are reserved for front ends; clients cannot set them.
    private static let reservedMetadataPrefix = "kedge."

    /// Checks the parameters against the limits.
    ///
    /// - Returns: The chunk size of the session.
    /// - Throws: `BAD_REQUEST`, `FILE_TOO_LARGE`, `FORBIDDEN`.
    func validate(_ configuration: EngineConfiguration) throws -> Int64 {
        guard FileName.isValid(fileName) else {
            throw EngineError(
                .badRequest,
                "fileName must be 1 to \(FileName.maxByteCount) bytes without path separators.")
        }
        if let mimeType, !Self.isPlausible(mimeType: mimeType) {
            throw EngineError(.badRequest, "mimeType is not a media type.")
        }
        // Metadata of front ends has limits of its own.
        let metadataByteCount = metadata.reduce(0) { sum, entry in
            entry.key.hasPrefix(Self.reservedMetadataPrefix)
                ? sum : sum + entry.key.utf8.count + entry.value.utf8.count
        }
        guard metadataByteCount <= configuration.maxMetadataByteCount else {
            throw EngineError(
                .badRequest, "metadata is larger than \(configuration.maxMetadataByteCount) bytes.")
        }
        guard metadata[FilePath.metadataKey].map(FilePath.isStorable) ?? true else {
            throw EngineError(
                .badRequest,
                "The path in the metadata has a NUL or more than \(FilePath.maxByteCount) bytes.")
        }
        if let sourceIDs {
            guard !sourceIDs.isEmpty, sourceIDs.count <= configuration.maxSourceCount,
                Set(sourceIDs).count == sourceIDs.count
            else {
                throw EngineError(
                    .badRequest,
                    "A final upload needs 1 to \(configuration.maxSourceCount) different uploads.")
            }
        }
        if let size = fileSize {
            guard size >= 0 else { throw EngineError(.badRequest, "fileSize is negative.") }
            let limit = min(configuration.maxFileSize, permit.maxByteCount ?? .max)
            guard size <= limit else { throw EngineError.tooLarge(maxBytes: limit) }
            if let refusal = permit.sizeLimits.refusal(ofSize: size) { throw refusal }
        }
        guard chunkSize ?? 1 > 0 else {
            throw EngineError(.badRequest, "chunkSize is not positive.")
        }
        return fittingChunkSize(for: chunkSize, configuration)
    }

    /// Returns the size within the limits that is nearest to the preferred one, rounded to whole
    /// blocks of SHA-256 where the limits allow that. Chunk and file are then hashed together.
    ///
    /// - Parameter preference: A size above zero; nil for the default.
    func fittingChunkSize(
        for preference: Int64?, _ configuration: EngineConfiguration
    ) -> Int64 {
        let wish = preference ?? configuration.defaultChunkSize
        let sizes = configuration.chunkSizes
        let preferred = min(max(wish, sizes.lowerBound), sizes.upperBound)
        let largest = fileSize ?? configuration.maxFileSize
        let doubled = ChunkLayout.chunkSize(
            preferred: preferred < configuration.minStoredChunkSize
                ? configuration.defaultChunkSize : preferred,
            forFileOf: largest, maxChunkCount: configuration.maxChunkCount)
        // Doubling may exceed an upper limit that would have been enough.
        let upper = sizes.upperBound
        let size =
            doubled > upper && configuration.fits(largest, inChunksOf: upper) ? upper : doubled
        let block = configuration.chunkSizeMultiple
        let roundedDown = size - size % block
        guard roundedDown < size else { return size }
        let (roundedUp, overflow) = roundedDown.addingReportingOverflow(block)
        guard overflow || roundedUp > upper else { return roundedUp }
        let isAllowed =
            roundedDown >= max(sizes.lowerBound, configuration.minStoredChunkSize)
            && configuration.fits(largest, inChunksOf: roundedDown)
        return isAllowed ? roundedDown : size
    }

    /// Whether the text is `type/subtype` of token characters, with parameters of printable ASCII
    /// (RFC 9110 section 8.3.1).
    private static func isPlausible(mimeType: String) -> Bool {
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
