internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// Brings the body of a request into an upload, and makes the file when it was the last one.
struct UploadTransfer: Sendable {
    enum Outcome: Sendable {
        /// More is to come; every byte below the offset is durable.
        case incomplete(offset: Int64)
        case complete(FileRecord)
    }

    let engine: TransferEngine
    let call: ResumableUploadCall
    let context: KedgeRequestContext
    let id: SessionID
    /// What this request says that the file's SHA-256 is, beside what was said when the upload began.
    var expectedDigest: SHA256Digest?

    private var owner: OwnerID { context.principal.owner }

    /// - Parameter knownLength: The declared length of the file.
    /// - Throws: ``ResumableUploadRefusal``, and what appending and finishing throw. What came before an
    ///   interruption counts, unless the append has a checksum.
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
            // Another request has told the end, or has given the upload up, since this one looked.
            _ = try await ResumableUploadRoutes(engine: engine).view(of: id, context)
            return .complete(try await repeated(isEmptyEnd: put.completes && body.isEmpty))
        } catch let error as EngineError {
            let room = knownLength.map { $0 - put.offset }
            let goesBeyond = room.map { counted.readByteCount > $0 } ?? false
            throw try await refusal(for: error, put, goesBeyond: goesBeyond)
        }
        return put.completes ? .complete(try await finish()) : .incomplete(offset: offset)
    }

    /// Answers a request to an upload that has all its bytes, and whose end was told. Told again, it gives the
    /// same answer, for the first one may have been lost.
    ///
    /// - Parameter isEmptyEnd: The request tells the end, and brings no bytes.
    func repeated(isEmptyEnd: Bool) async throws -> FileRecord {
        guard isEmptyEnd else { throw ResumableUploadRefusal.completedUpload }
        return try await finish()
    }

    /// The bytes go beyond the declared length: ends the upload where the dialect wants it.
    func endBeyondLength() async throws {
        if call.dialect.endsUploadBeyondLength {
            try await engine.cancelSession(id, owner: owner)
        }
    }

    /// Makes the file of an upload that has all its bytes; asked again, it gives the same one.
    private func finish() async throws -> FileRecord {
        do {
            let file = try await engine.finish(id, owner: owner, expecting: expectedDigest)
            context.notes.set("file.id", file.id)
            return file
        } catch let error as EngineError where error.code == .integrityMismatch {
            // What this request says counts for this request; the next one may say what is right.
            if let expectedDigest, error.expectedDigest == expectedDigest { throw error }
            // Bytes of an upload cannot be sent again, so it will never be the file that was promised.
            try await engine.cancelSession(id, owner: owner)
            throw ResumableUploadRefusal.failedProcessing(error)
        } catch let error as EngineError where error.code == .fileGone {
            throw ResumableUploadRefusal.failedProcessing(error)
        } catch let error as EngineError where error.code == .sessionClosed {
            // Given up since its last byte came.
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
            // A 409 would ask the client to go on behind bytes that are not its own.
            return EngineError(.badRequest, error.detail ?? "A chunk with other bytes is here.")
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
