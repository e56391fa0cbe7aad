internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

extension TusRoutes {
    /// `PATCH`: appends the body. Bytes received before an interruption count, unless the request
    /// has a checksum: then the body counts as a whole or not at all.
    ///
    /// The response to the last byte is sent after the file has been created.
    ///
    /// - Throws: `UPLOAD_IS_FINAL`, `UPLOAD_CHECKSUM_MISMATCH`, `OFFSET_MISMATCH`, and errors of
    ///   appending.
    @Sendable func patch(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let fields = TusRequestFields(fields: request.headers)
        guard fields.isAppend else {
            throw EngineError(.unsupportedMediaType, "Content-Type must be \(TusField.mediaType).")
        }
        let offset = try fields.offset()
        let length = try fields.length(limit: engine.configuration.maxFileSize)
        let append = try TusAppend(request, context)
        let upload = try await upload(context)
        guard upload.sourceIDs == nil else { throw EngineError(.uploadIsFinal) }
        let after =
            upload.view.state == .completed
            ? try Self.nothing(append, at: offset, of: upload)
            : try await self.append(
                append, to: upload, at: offset, declaring: length, context)
        return Response(status: .noContent, headers: after.progressFields)
    }

    /// Appends a body, and creates the file of a complete upload.
    ///
    /// - Parameter isResumable: Whether the client knows the address of the upload.
    /// - Returns: The upload after the append.
    /// - Throws: `FILE_TOO_LARGE`, also for a body without an announced length that exceeds the
    ///   upload's end; errors of appending and finishing.
    func append(
        _ append: TusAppend, to upload: TusUpload, at offset: Int64, declaring length: Int64?,
        isResumable: Bool = true, _ context: KedgeRequestContext
    ) async throws -> TusUpload {
        let size = length ?? upload.view.fileSize
        var put = append.put(at: offset, declaring: length, known: size)
        put.isResumable = isResumable
        let body = CountedBody(append.body)
        do {
            _ = try await engine.append(
                put, to: upload.view.id, owner: context.owner, body: body)
        } catch let error as EngineError where error.code == .lengthMismatch {
            // Otherwise the body was interrupted, and the received bytes count.
            guard let size, body.readByteCount > size - offset else { throw error }
            throw EngineError.tooLarge(
                "The body continues after the end of the upload.", maxBytes: size)
        }
        return try await finished(try await self.upload(upload.view.id, context), context)
    }

    /// Creates the file of a complete upload, or starts the concatenations that wait for it.
    func finished(
        _ upload: TusUpload, _ context: KedgeRequestContext
    ) async throws -> TusUpload {
        guard upload.isWhole else { return upload }
        if upload.isPartial {
            await finishWaiting(for: upload.view.id, context)
            return upload
        }
        _ = try await file(of: upload, context)
        return try await self.upload(upload.view.id, context)
    }

    /// Accepts an empty append at the end of a completed upload. Idempotent.
    private static func nothing(
        _ append: TusAppend, at offset: Int64, of upload: TusUpload
    ) throws -> TusUpload {
        guard offset == upload.view.offset else {
            throw EngineError.offsetMismatch(expected: upload.view.offset)
        }
        guard append.isEmpty else {
            throw EngineError.tooLarge(
                "The upload is complete.", maxBytes: upload.view.fileSize)
        }
        return upload
    }
}
