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
        let concatenation = try request.headers[TusField.concat].map {
            try TusConcatenation($0, maxSourceCount: engine.configuration.maxSourceCount)
        }
        if concatenation != nil { try Self.requireConcatenation(by: context.principal) }
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
        new.metadata[TusUpload.MetadataKey.concat] = concatenation?.text
        new.metadata[FilePath.metadataKey] = metadata.path
        new.metadata[FileTime.metadataKey] = metadata.modified?.text
        if case .final(let sources) = concatenation {
            guard append.isEmpty, fields.fields[TusField.length] == nil else {
                throw EngineError(
                    .badRequest, "A final upload has neither Upload-Length nor a body.")
            }
            try await requireLinks(of: sources, context)
            new.sourceIDs = sources.map(\.id)
        } else {
            new.fileSize = try size(in: fields)
        }
        new = try new.permitted(to: context.principal, declaredName: metadata.declaredFileName)
        if let sourceIDs = new.sourceIDs {
            return try await createFinal(new, of: sourceIDs, request, context)
        }
        return try await begin(new, append, request, context)
    }

    /// Creates an upload that is not a final one.
    private func begin(
        _ new: NewSession, _ append: TusAppend, _ request: Request,
        _ context: KedgeRequestContext
    ) async throws -> Response {
        let session = try await engine.createOrFindSession(new, owner: context.owner)
        context.logMetadata.set("session.id", session.id)
        guard session.isNew else {
            // Created before by the same link. Another request may be appending, so the body does
            // not count.
            return try await created(try await upload(session.id, context), request, context)
        }
        do {
            let upload = try await self.upload(session.id, context)
            let after =
                append.isEmpty
                ? try await finished(upload, context)
                : try await self.append(
                    append, to: upload, at: 0, declaring: nil, isResumable: false, context)
            return try await created(after, request, context)
        } catch {
            await engine.discardSession(session.id, owner: context.owner)
            throw error
        }
    }

    /// The response to a `POST` that created an upload.
    func created(
        _ upload: TusUpload, _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let view = upload.view
        var fields = upload.progressFields
        // A final upload has no offset before it has all bytes.
        if upload.awaitsSources { fields[TusField.offset] = nil }
        let query = try await links.query(
            of: view.id, createdAt: view.createdAt, for: context.principal)
        fields[.location] = address.url(endpoint.path(of: view.id) + query, asked: request)
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
