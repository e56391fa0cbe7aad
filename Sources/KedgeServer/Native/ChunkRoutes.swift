internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// `PUT /uploads/sessions/{sessionId}/chunks/{index}`
struct ChunkRoutes: Sendable {
    let engine: TransferEngine

    @Sendable func put(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let id = try context.sessionID()
        context.logMetadata.set("session.id", id)
        let put = try Self.parse(request, index: context.parameters.get("index") ?? "")
        context.logMetadata.set("chunk.index", put.index)
        context.logMetadata.set("chunk.range", put.contentRange)
        let body = try RequestByteBody(request, context: context)
        let outcome = try await engine.putChunk(
            put, to: id, owner: context.owner, body: body)
        switch outcome {
        case .created(let receipt):
            context.logMetadata.set("chunk.outcome", "created")
            return .json(receipt, status: .created)
        case .alreadyReceived(let receipt):
            context.logMetadata.set("chunk.outcome", "already-received")
            return .json(receipt)
        case .partial(let chunk):
            context.logMetadata.set("chunk.outcome", "partial")
            return .json(chunk, status: .accepted)
        }
    }

    /// - Throws: `CHUNK_OUT_OF_BOUNDS`, `RANGE_MISMATCH`, `CHUNK_HASH_REQUIRED`, `BAD_REQUEST`.
    private static func parse(_ request: Request, index text: String) throws -> ChunkPut {
        guard let value = WireInteger.parse(text), let index = Int(exactly: value),
            index < ChunkLayout.maxChunkCount
        else {
            throw EngineError(
                .chunkOutOfBounds, "The index must be a decimal number below the chunk count.")
        }
        guard let rangeText = request.headers[.contentRange],
            let contentRange = ContentRange(rangeText)
        else {
            throw EngineError(
                .rangeMismatch, "Content-Range must be \"bytes first-last/total\".")
        }
        // `X-Chunk-Hash` covers the whole chunk, `Content-Digest` this body. They differ when the
        // body is a part of a chunk. The hash of the chunk takes precedence.
        if let value = request.headers[.xChunkHash] {
            let digest = try require(DigestHeader.parseChunkHash(value), "X-Chunk-Hash")
            return ChunkPut(index: index, contentRange: contentRange, digest: digest)
        }
        guard let value = request.headers[.contentDigest] else {
            throw EngineError(.chunkHashRequired, "Send X-Chunk-Hash: sha256=<64 hex digits>.")
        }
        return ChunkPut(
            index: index, contentRange: contentRange,
            digest: try require(DigestHeader.parseRFC9530(value), "Content-Digest"),
            isBodyDigest: true)
    }

    private static func require(_ digest: SHA256Digest?, _ header: String) throws -> SHA256Digest {
        guard let digest else {
            throw EngineError(.chunkHashRequired, "\(header) has no valid SHA-256.")
        }
        return digest
    }
}
