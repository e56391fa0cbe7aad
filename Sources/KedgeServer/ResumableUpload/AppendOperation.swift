internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// Appends a request's body to an upload, and creates the file after its last byte.
struct AppendOperation: Sendable {
    enum Outcome: Sendable {
        /// More bytes follow. Every byte below the offset is durable.
        case incomplete(offset: Int64)
        case complete(FileRecord)
    }

    let engine: TransferEngine
    let call: ResumableUploadCall
    let context: KedgeRequestContext
    let id: SessionID
    /// The file's SHA-256 that this request declares, if it differs from the upload's own
    /// declaration.
    var expectedDigest: SHA256Digest?

    private var owner: OwnerID { context.owner }

    /// - Parameter knownLength: The declared length of the file.
    /// - Throws: ``ResumableUploadRefusal``, and errors of appending and finishing. Bytes received
    ///   before an interruption count, unless the append has a checksum.
    func run(_ put: AppendPut, knownLength: Int64?, body: RequestByteBody) async throws -> Outcome {
        let counted = CountedBody(body)
        let progress = UploadProgress(
            engine: engine, id: id, owner: owner, call: call,
            interim: InterimResponses(context, to: call.headers))
        let offset: Int64
        do {
            offset = try await progress.reporting(counted, from: put.offset) {
                try await engine.append(put, to: id, owner: owner, body: counted)
            }
        } catch let error as EngineError where error.code == .sessionClosed {
            // Another request has meanwhile completed or canceled the upload.
            _ = try await ResumableUploadRoutes(engine: engine).view(of: id, context)
            return .complete(try await repeated(isEmptyEnd: put.completes && body.isEmpty))
        } catch let error as EngineError {
            let room = knownLength.map { $0 - put.offset }
            let goesBeyond = room.map { counted.readByteCount > $0 } ?? false
            throw try await refusal(for: error, put, goesBeyond: goesBeyond)
        }
        return put.completes ? .complete(try await finish()) : .incomplete(offset: offset)
    }

    /// Answers a request to an upload that was already completed. Idempotent: returns the same
    /// file, because the first response may have been lost.
    ///
    /// - Parameter isEmptyEnd: Whether the request completes the upload without bytes.
    func repeated(isEmptyEnd: Bool) async throws -> FileRecord {
        guard isEmptyEnd else { throw ResumableUploadRefusal.completedUpload }
        return try await finish()
    }

    /// Cancels the upload if the version requires this for bytes beyond the declared length.
    func endBeyondLength() async throws {
        if call.interopVersion.endsUploadBeyondLength {
            try await engine.cancelSession(id, owner: owner)
        }
    }

    /// Creates the file of an upload that has all its bytes. Idempotent: returns the same file
    /// again.
    private func finish() async throws -> FileRecord {
        do {
            let file = try await engine.finish(id, owner: owner, expecting: expectedDigest)
            context.logMetadata.set("file.id", file.id)
            return file
        } catch let error as EngineError where error.code == .integrityMismatch {
            // A digest of this request counts for this request only. The next one may declare the
            // right one.
            if let expectedDigest, error.expectedDigest == expectedDigest { throw error }
            // Bytes of an upload cannot be replaced, so it can never match its declared digest.
            try await engine.cancelSession(id, owner: owner)
            throw ResumableUploadRefusal.failedProcessing(error)
        } catch let error as EngineError where error.code == .fileGone {
            throw ResumableUploadRefusal.failedProcessing(error)
        } catch let error as EngineError where error.code == .sessionClosed {
            // Canceled since its last byte arrived.
            throw EngineError(.sessionNotFound)
        }
    }

    private func refusal(
        for error: EngineError, _ put: AppendPut, goesBeyond: Bool
    ) async throws -> any Error {
        switch error.code {
        case .offsetMismatch:
            let expected = error.expectedOffset ?? put.offset
            return ResumableUploadRefusal.mismatchingOffset(
                expected: expected, provided: put.offset)
        case .chunkConflict:
            // After a 409 the client would continue behind bytes that are not its own.
            return EngineError(
                .badRequest, error.detail ?? "A chunk was received with other bytes.")
        case .sizeMismatch:
            return ResumableUploadRefusal.inconsistentLength
        case .lengthMismatch where goesBeyond:
            try await endBeyondLength()
            return ResumableUploadRefusal.inconsistentLength
        case .lengthMismatch:
            return ResumableUploadRefusal.brokenBody(error)
        default:
            return error
        }
    }
}
