internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

extension TusRoutes {
    /// `POST` (extensions creation, creation-with-upload, creation-defer-length, concatenation):
    /// creates an upload, and can store its first bytes.
    ///
    /// - Throws: `BAD_REQUEST`, `UNSUPPORTED_MEDIA_TYPE`, and errors of creating and appending. An
    ///   upload whose first bytes failed is canceled, because its client does not know the address.
    @Sendable func create(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let metadata = try TusMetadata(request.headers[TusField.metadata] ?? "")
        let concat = request.headers[TusField.concat]
        let concatenation = try concat.map {
            try TusConcatenation($0, maxSourceCount: engine.configuration.maxSourceCount)
        }
        let append = try TusAppend(request, context)
        let fields = TusRequestFields(fields: request.headers)
        guard append.isEmpty || fields.isAppend else {
            throw EngineError(
                .unsupportedMediaType, "Content-Type must be \(TusField.mediaType).")
        }
        var new = NewSession(
            fileName: metadata.fileName, fileSize: nil, mimeType: metadata.mimeType,
            client: context.client)
        new.metadata[TusUpload.MetadataKey.metadata] = metadata.text
        new.metadata[TusUpload.MetadataKey.concat] = concat
        new.metadata[FilePath.metadataKey] = metadata.path
        new.metadata[FileTime.metadataKey] = metadata.modified?.text
        if case .final(let sourceIDs) = concatenation {
            guard append.isEmpty, fields.fields[TusField.length] == nil else {
                throw EngineError(
                    .badRequest, "A final upload has neither Upload-Length nor a body.")
            }
            return try await createFinal(new, of: sourceIDs, request, context)
        }
        new.fileSize = try size(in: fields)
        let status = try await engine.createSession(new, owner: context.owner)
        context.logMetadata.set("session.id", status.sessionId)
        do {
            let upload = try await self.upload(status.sessionId, context)
            let after =
                append.isEmpty
                ? try await finished(upload, context)
                : try await self.append(
                    append, to: upload, at: 0, declaring: nil, isResumable: false, context)
            return created(after, asked: request)
        } catch {
            await engine.discardSession(status.sessionId, owner: context.owner)
            throw error
        }
    }

    /// The response to a `POST` that created an upload.
    func created(_ upload: TusUpload, asked request: Request) -> Response {
        var fields = upload.progressFields
        // A final upload has no offset before it has all bytes.
        if upload.awaitsSources { fields[TusField.offset] = nil }
        fields[.location] = address.url(
            endpoint.path(of: upload.view.id), asked: request)
        return Response(status: .created, headers: fields)
    }

    /// The size of the upload; nil when it is deferred.
    ///
    /// - Throws: `BAD_REQUEST` unless the client sends either `Upload-Length` or
    ///   `Upload-Defer-Length`; `FILE_TOO_LARGE`.
    private func size(in fields: TusRequestFields) throws -> Int64? {
        let length = try fields.length(limit: engine.configuration.maxFileSize)
        guard try fields.defersLength() == (length == nil) else {
            throw EngineError(.badRequest, "Send Upload-Length, or Upload-Defer-Length: 1.")
        }
        return length
    }
}
