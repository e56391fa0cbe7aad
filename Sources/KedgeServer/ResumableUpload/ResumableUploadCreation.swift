internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

extension ResumableUploadRoutes {
    /// `POST /files` as a resumable upload: creates an upload, announces its address, and stores
    /// the bytes of the request.
    ///
    /// - Parameter call: A call that begins an upload.
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
            // With a checksum, a length that follows from the body does not count before the body
            // does.
            let declared = put.checksum == nil ? length : call.declaredLength
            let new = try Self.session(request, call, length: declared, context)
            let key = try IdempotencyKey.text(of: request)
            let session = try await engine.createOrFindSession(
                new, owner: context.owner,
                idempotencyKey: try key.map { try IdempotencyKey($0, for: Self.message(new)) })
            // Any other client does not know where to resume.
            put.isResumable =
                key != nil || call.isVersionNamed && call.interopVersion.announcesUploads
            let id = session.id
            context.logMetadata.set("session.id", id)
            let location = try await location(of: session, context)
            announce(location, call, context)
            let transfer = AppendOperation(engine: engine, call: call, context: context, id: id)
            if key != nil, let known = try await outcome(of: transfer) {
                return answer(to: known, id, call, location: location)
            }
            guard session.isNew || key != nil else {
                return try await repeated(transfer, at: location)
            }
            // A client that missed the 104, which proxies may drop, gets the address from the
            // error.
            var failures = errors(call, context)
            if call.isVersionNamed || key != nil { failures.location = location }
            do {
                return try await failures.answering {
                    let outcome = try await transfer.run(put, knownLength: length, body: body)
                    return answer(to: outcome, id, call, location: location)
                }
            } catch {
                // The client has neither the address nor a key to find it, so it cannot resume.
                if !call.isVersionNamed, key == nil {
                    await engine.discardSession(id, owner: context.owner)
                }
                throw error
            }
        }
    }

    /// Answers a creation by a link that has created the upload before. The answer has the address
    /// and the offset, and no byte of the body counts: another request may be appending.
    private func repeated(
        _ transfer: AppendOperation, at location: String
    ) async throws -> Response {
        let view = try await view(of: transfer.id, transfer.context)
        guard view.state == .open else {
            return answer(with: try await transfer.repeated(isEmptyEnd: true), transfer.call)
        }
        var failures = errors(transfer.call, transfer.context)
        failures.knownLocation = location
        return try await failures.answering {
            throw ResumableUploadRefusal.mismatchingOffset(expected: view.offset, provided: 0)
        }
    }

    private static func session(
        _ request: Request, _ call: ResumableUploadCall, length: Int64?,
        _ context: KedgeRequestContext
    ) throws -> NewSession {
        var metadata: [String: String] = [:]
        if let version = call.interopVersion.interopVersion {
            metadata[versionKey] = String(version)
        }
        return try NewSession(
            fileName: try ContentDisposition.fileName(of: request), fileSize: length,
            mimeType: request.headers[.contentType],
            declaredDigest: try ResumableUploadDigests.representation(request.headers),
            metadata: metadata, client: context.client
        ).permitted(
            to: context.principal,
            declaredName: try ContentDisposition.declaredFileName(of: request))
    }

    /// The content of a creation that its idempotency key covers.
    private static func message(_ new: NewSession) -> [String: String] {
        var message = new.metadata
        message["fileName"] = new.fileName
        message["fileSize"] = new.fileSize.map { String($0) }
        message["mimeType"] = new.mimeType
        message["digest"] = new.declaredDigest?.hex
        return message
    }

    /// The outcome of an upload that an earlier request may have begun. That request may still be
    /// running. Nil when the upload has no bytes: a body that starts with the first byte can then
    /// be stored.
    private func outcome(of transfer: AppendOperation) async throws -> AppendOperation.Outcome? {
        let view = try await view(of: transfer.id, transfer.context, stopsAppend: true)
        guard view.state == .open else {
            return .complete(try await transfer.repeated(isEmptyEnd: true))
        }
        return view.offset == 0 ? nil : .incomplete(offset: view.offset)
    }

    /// Announces the address before the body is read, so that the client can resume from the first
    /// byte.
    private func announce(
        _ location: String, _ call: ResumableUploadCall, _ context: KedgeRequestContext
    ) {
        guard call.isVersionNamed, call.interopVersion.announcesUploads else { return }
        var head = Self.interimHead(call)
        head.headerFields[.location] = location
        head.headerFields.set(limits(call))
        InterimResponses(context, to: call.headers)?.send(head)
    }

    /// The response to a request whose body has been stored.
    ///
    /// - Parameter location: The address of the upload for the response to its creation; nil for
    ///   any other request.
    func answer(
        to outcome: AppendOperation.Outcome, _ id: SessionID, _ call: ResumableUploadCall,
        location: String? = nil
    ) -> Response {
        switch outcome {
        case .complete(let file):
            return answer(with: file, call)
        case .incomplete(let offset):
            let status = location != nil ? 201 : call.interopVersion.incompleteAppendStatus
            var response =
                status == 204
                ? Response(status: .noContent)
                : Response.json(
                    UploadReceipt(sessionId: id, receivedBytes: offset),
                    status: HTTPResponse.Status(code: status))
            response.headers.set(call.stateFields(isComplete: false, offset: offset))
            response.headers.set(limits(call))
            response.headers[.location] = location
            return response
        }
    }

    /// The response with the file, whichever request completed the upload.
    func answer(with file: FileRecord, _ call: ResumableUploadCall) -> Response {
        var response = Response.created(file)
        response.headers[.contentLocation] = "/files/\(file.id)"
        response.headers[.reprDigest] = DigestHeader.rfc9530(file.digest)
        response.headers.set(call.stateFields(isComplete: true, offset: file.byteCount))
        return response
    }
}
