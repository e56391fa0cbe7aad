internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

extension ResumableUploadRoutes {
    /// `POST /files` in a dialect of resumable uploads: makes an upload, tells its address, and takes what
    /// the request brings of the file.
    ///
    /// - Parameter call: Begins an upload.
    func create(
        _ request: Request, _ context: KedgeRequestContext, _ call: ResumableUploadCall
    ) async throws -> Response {
        let completes = call.completes == true
        return try await errors(call, context).answering {
            let body = try RequestByteBody(request, context: context)
            let length = try call.length(offset: 0, announced: body.announcedByteCount)
            var put = AppendPut(
                offset: 0, checksum: try ResumableUploadDigests.content(request.headers),
                completes: completes)
            // A length that follows from the body counts when the body does.
            let declared = put.checksum == nil ? length : call.declaredLength
            var new = try Self.session(request, call, length: declared)
            new.client = context.client
            let key = try IdempotencyKey.text(of: request)
            let session = try await engine.createSession(
                new, owner: context.principal.owner,
                idempotencyKey: try key.map { try IdempotencyKey($0, for: Self.message(new)) })
            // Another client has not learned where to go on.
            put.isResumable =
                key != nil || call.isVersionNamed && call.dialect.announcesUploads
            let id = session.sessionId
            context.notes.set("session.id", id)
            announce(id, call, context)
            let transfer = UploadTransfer(engine: engine, call: call, context: context, id: id)
            if key != nil, let known = try await outcome(of: transfer) {
                return answer(to: known, id, call, isNew: true)
            }
            // A client that missed the 104, which proxies drop, learns the address from the error.
            var failures = errors(call, context)
            if call.isVersionNamed || key != nil { failures.location = Self.location(of: id) }
            do {
                return try await failures.answering {
                    let outcome = try await transfer.run(put, knownLength: length, body: body)
                    return answer(to: outcome, id, call, isNew: true)
                }
            } catch {
                // Nobody knows the address, nor a way to it, so nobody would come back.
                if !call.isVersionNamed, key == nil {
                    await engine.giveUp(id, owner: context.principal.owner)
                }
                throw error
            }
        }
    }

    private static func session(
        _ request: Request, _ call: ResumableUploadCall, length: Int64?
    ) throws -> NewSession {
        var metadata: [String: String] = [:]
        if let version = call.dialect.interopVersion { metadata[versionKey] = String(version) }
        return NewSession(
            fileName: try FileRoutes.fileName(of: request), fileSize: length,
            mimeType: request.headers[.contentType],
            declaredDigest: try ResumableUploadDigests.representation(request.headers),
            metadata: metadata)
    }

    /// What a creation that is repeated repeats, for the key that it has.
    private static func message(_ new: NewSession) -> [String: String] {
        var message = new.metadata
        message["fileName"] = new.fileName
        message["fileSize"] = new.fileSize.map { String($0) }
        message["mimeType"] = new.mimeType
        message["digest"] = new.declaredDigest?.hex
        return message
    }

    /// What has become of an upload that may have been begun before, by a request that may hang; nil when it
    /// has no bytes, so that a body that starts with the first can be taken.
    private func outcome(of transfer: UploadTransfer) async throws -> UploadTransfer.Outcome? {
        let view = try await view(of: transfer.id, transfer.context, stopsAppend: true)
        guard view.state == .open else {
            return .complete(try await transfer.repeated(isEmptyEnd: true))
        }
        return view.offset == 0 ? nil : .incomplete(offset: view.offset)
    }

    /// Tells the address before the body is read, so that the client can resume from its first byte on.
    private func announce(
        _ id: SessionID, _ call: ResumableUploadCall, _ context: KedgeRequestContext
    ) {
        guard call.isVersionNamed, call.dialect.announcesUploads else { return }
        var head = Self.interimHead(call)
        head.headerFields[.location] = Self.location(of: id)
        head.headerFields.set(limits(call))
        InterimResponses(context, to: call.headers)?.send(head)
    }

    /// The answer to a request whose body has been taken.
    ///
    /// - Parameter isNew: The request began the upload, and is told its address.
    func answer(
        to outcome: UploadTransfer.Outcome, _ id: SessionID, _ call: ResumableUploadCall,
        isNew: Bool
    ) -> Response {
        switch outcome {
        case .complete(let file):
            return answer(with: file, call)
        case .incomplete(let offset):
            let status = isNew ? 201 : call.dialect.incompleteAppendStatus
            var response =
                status == 204
                ? Response(status: .noContent)
                : Response.json(
                    UploadReceipt(sessionId: id, receivedBytes: offset),
                    status: HTTPResponse.Status(code: status))
            response.headers.set(call.stateFields(isComplete: false, offset: offset))
            response.headers.set(limits(call))
            if isNew { response.headers[.location] = Self.location(of: id) }
            return response
        }
    }

    /// What `POST /files` answers, to whichever request completed the upload.
    func answer(with file: FileRecord, _ call: ResumableUploadCall) -> Response {
        var response = FileRoutes.created(file)
        response.headers[.contentLocation] = "/files/\(file.id)"
        response.headers[.reprDigest] = DigestHeader.rfc9530(file.digest)
        response.headers.set(call.stateFields(isComplete: true, offset: file.byteCount))
        return response
    }
}
