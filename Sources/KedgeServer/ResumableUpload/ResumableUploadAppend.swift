internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

extension ResumableUploadRoutes {
    /// `PATCH`: appends bytes, or completes the upload.
    @Sendable func append(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        try await withUpload(request, context) { view, call in
            try await append(request, context, call, to: view)
        }
    }

    private func append(
        _ request: Request, _ context: KedgeRequestContext, _ call: ResumableUploadCall,
        to known: UploadView
    ) async throws -> Response {
        try Self.requireMediaType(of: request, call)
        guard let offset = call.offset, let completes = call.completes else {
            let name = call.interopVersion.completenessField
            throw EngineError(.badRequest, "An append needs Upload-Offset and \(name).")
        }
        context.logMetadata.set("upload.offset", offset)
        let body = try RequestByteBody(request, context: context)
        var put = AppendPut(
            offset: offset, checksum: try ResumableUploadDigests.content(request.headers),
            completes: completes)
        let digest = try ResumableUploadDigests.representation(request.headers)
        let view = try await view(known, at: offset, context)
        let transfer = AppendOperation(
            engine: engine, call: call, context: context, id: view.id,
            expectedDigest: digest == view.declaredDigest ? nil : digest)
        guard view.state == .open else {
            let file = try await transfer.repeated(isEmptyEnd: completes && body.isEmpty)
            return answer(with: file, call)
        }
        let length = try await requireLength(call, body, view, transfer)
        // With a checksum, a length that follows from the body does not count before the body does.
        if view.fileSize == nil {
            put.declaredSize = put.checksum == nil ? length : call.declaredLength
        }
        let outcome = try await transfer.run(put, knownLength: length, body: body)
        return answer(to: outcome, view.id, call)
    }

    /// Returns the upload for a body that starts at an offset.
    ///
    /// - Throws: ``ResumableUploadRefusal/mismatchingOffset(expected:provided:)``;
    ///   `UPLOAD_IS_FINAL`.
    private func view(
        _ known: UploadView, at offset: Int64, _ context: KedgeRequestContext
    ) async throws -> UploadView {
        guard known.state != .open || known.sourceIDs == nil else {
            throw EngineError(.uploadIsFinal)
        }
        if known.offset == offset { return known }
        // The offset is certain only after a running append has stopped.
        let view = try await stopped(known, context)
        guard view.offset == offset else {
            throw ResumableUploadRefusal.mismatchingOffset(expected: view.offset, provided: offset)
        }
        return view
    }

    /// Returns the file's length as known with this request; nil while it is unknown.
    ///
    /// - Throws: ``ResumableUploadRefusal/inconsistentLength``.
    private func requireLength(
        _ call: ResumableUploadCall, _ body: RequestByteBody, _ view: UploadView,
        _ transfer: AppendOperation
    ) async throws -> Int64? {
        if let size = view.fileSize, let announced = body.announcedByteCount,
            announced > size - view.offset
        {
            try await transfer.endBeyondLength()
            throw ResumableUploadRefusal.inconsistentLength
        }
        let length = try call.length(offset: view.offset, announced: body.announcedByteCount)
        guard let length, let size = view.fileSize else { return length ?? view.fileSize }
        guard length == size else { throw ResumableUploadRefusal.inconsistentLength }
        return size
    }

    private static func requireMediaType(
        of request: Request, _ call: ResumableUploadCall
    ) throws {
        guard let type = call.interopVersion.requiredAppendMediaType else { return }
        let sent = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        guard sent?.filter({ $0 != " " && $0 != "\t" }) == type else {
            throw ResumableUploadRefusal.wrongMediaType
        }
    }
}
