internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Uploads by draft-ietf-httpbis-resumable-upload. `POST /files` creates one, see
/// ``create(_:_:_:)``. Its address is `/uploads/resumable/{sessionId}`.
///
/// The upload is an ordinary session, so a client can continue it by another protocol.
struct ResumableUploadRoutes: Sendable {
    let engine: TransferEngine
    var links = SessionLinks.none

    static let uploadPath = "/uploads/resumable/{sessionId}"
    /// Metadata key of a session for the interop number of the request that created it.
    static let versionKey = "kedge.ietf.version"

    /// All operations, for the route table.
    var routes: [Route] {
        [
            Route(.options, "/files", .public, options),
            Route(.options, Self.uploadPath, .public, options),
            Route(.head, Self.uploadPath, Self.reading, state),
            Route(.get, Self.uploadPath, Self.reading, state),
            Route(.patch, Self.uploadPath, .anyOf(.uploadsWrite, links: [.session]), append),
            Route(.delete, Self.uploadPath, .anyOf(.uploadsWrite, links: [.session]), cancel),
        ]
    }

    private static let reading = Access.anyOf(.uploadsRead, .uploadsWrite, links: [.session])

    /// The address of an upload for its creator.
    func location(
        of session: CreatedSession, _ context: KedgeRequestContext
    ) async throws -> String {
        let query = try await links.query(
            of: session.id, createdAt: session.createdAt, for: context.principal)
        return "/uploads/resumable/\(session.id)\(query)"
    }

    /// The head of a 104 in the protocol version of a request.
    static func interimHead(_ call: ResumableUploadCall) -> HTTPResponse {
        HTTPResponse(
            status: HTTPResponse.Status(code: 104, reasonPhrase: "Upload Resumption Supported"),
            headerFields: call.versionFields)
    }

    /// `OPTIONS`: announces that uploads can be resumed here, and the limits.
    @Sendable func options(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let call = ResumableUploadCall(request.headers)
        let methods =
            if context.parameters.get("sessionId") != nil {
                "DELETE, GET, HEAD, OPTIONS, PATCH"
            } else if request.uri.path == "/files" {
                "GET, OPTIONS, POST"
            } else {
                "OPTIONS, POST"
            }
        var response = Response(status: .ok, headers: [.allow: methods])
        response.headers.set(call.versionFields)
        response.headers.set(limits(call))
        if let type = call.interopVersion.requiredAppendMediaType {
            response.headers[.acceptPatch] = type
        }
        return response
    }

    /// `HEAD` and `GET`: report the offset of the upload.
    @Sendable func state(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        try await withUpload(request, context) { known, call in
            // The client has given up an append that may still be running. Stopping it makes the
            // reported offset one at which the client can resume.
            let view = try await stopped(known, context)
            let isComplete = view.state == .completed
            if isComplete, let file = view.fileID {
                try await RequestError.reportingDamageAsGone(fields: call.versionFields) {
                    do {
                        _ = try await engine.file(file, owner: context.owner)
                    } catch let error as EngineError where error.code == .fileGone {
                        // The upload remains completed after its file is deleted.
                    }
                }
            }
            // A final upload has no offset at which a client can resume.
            let offset = isComplete || view.sourceIDs == nil ? view.offset : nil
            var response = Response(status: .noContent)
            response.headers.set(call.stateFields(isComplete: isComplete, offset: offset))
            response.headers.set(
                call.limitFields(
                    maxSize: engine.configuration.maxFileSize,
                    lifetime: isComplete ? nil : secondsLeft(of: view)))
            if call.interopVersion.hasLengthAndLimits, let size = view.fileSize {
                response.headers[.uploadLength] = String(size)
            }
            // Repeats the result for a client that missed the completing response.
            if isComplete, let file = view.fileID {
                response.headers[.contentLocation] = "/files/\(file)"
                response.headers[.reprDigest] = view.finalDigest.map(DigestHeader.rfc9530)
            }
            return response
        }
    }

    /// `DELETE`: cancels the upload. When repeated, it responds that there is none.
    @Sendable func cancel(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        try await withUpload(request, context) { view, call in
            try await engine.cancelSession(view.id, owner: context.owner)
            return Response(status: .noContent, headers: call.versionFields)
        }
    }

    /// Runs a handler on the upload that the path names. When the request names no version, the
    /// handler and its errors use the version of the request that created the upload.
    ///
    /// - Throws: Errors of ``view(of:_:stopsAppend:)`` and of the handler.
    func withUpload(
        _ request: Request, _ context: KedgeRequestContext,
        _ handle: (UploadView, ResumableUploadCall) async throws -> Response
    ) async throws -> Response {
        let id = try context.sessionID()
        context.logMetadata.set("session.id", id)
        var call = ResumableUploadCall(request.headers)
        let view: UploadView
        do {
            view = try await self.view(of: id, context)
        } catch let error as EngineError {
            throw errors(call, context).requestError(error)
        }
        if !call.isVersionNamed, let begun = Self.interopVersion(of: view) {
            call.interopVersion = begun
        }
        let errors = errors(call, context, isComplete: view.state == .completed)
        return try await errors.answering {
            try await requireLink(after: view, context)
            return try await handle(view, call)
        }
    }

    /// Refuses the link of an upload that was completed more than a day ago.
    private func requireLink(after view: UploadView, _ context: KedgeRequestContext) async throws {
        guard context.principal.link != nil, let id = view.fileID else { return }
        do {
            try context.requireLink(
                after: try await engine.file(id, owner: context.owner), at: engine.now)
        } catch let error as EngineError where [.fileGone, .fileDamaged].contains(error.code) {
            // The handler decides about an upload without its file.
        }
    }

    /// The current state of an upload.
    ///
    /// - Throws: `SESSION_NOT_FOUND`, also for a canceled or failed upload; `SESSION_EXPIRED`.
    func view(
        of id: SessionID, _ context: KedgeRequestContext, stopsAppend: Bool = false
    ) async throws -> UploadView {
        do {
            return try await engine.uploadView(
                of: id, owner: context.owner, stopsAppend: stopsAppend)
        } catch let error as EngineError where error.code == .sessionClosed {
            throw EngineError(.sessionNotFound)
        }
    }

    /// Stops a running append and returns the upload with all its bytes. The offset then holds
    /// until another request appends.
    ///
    /// A final upload is returned as it is: the service itself appends copies of its partial
    /// uploads.
    func stopped(_ view: UploadView, _ context: KedgeRequestContext) async throws -> UploadView {
        guard view.sourceIDs == nil else { return view }
        return try await self.view(of: view.id, context, stopsAppend: true)
    }

    /// The version of the request that created an upload; nil when it named none or used another
    /// protocol.
    private static func interopVersion(of view: UploadView) -> ResumableUploadVersion? {
        view.metadata[versionKey].flatMap { WireInteger.parse($0) }
            .flatMap(ResumableUploadVersion.init(interopVersion:))
    }

    func errors(
        _ call: ResumableUploadCall, _ context: KedgeRequestContext, isComplete: Bool = false
    ) -> ResumableUploadErrors {
        ResumableUploadErrors(
            call: call, context: context, isComplete: isComplete, limits: limits(call))
    }

    /// The limits of an upload that begins or receives bytes now.
    func limits(_ call: ResumableUploadCall) -> HTTPFields {
        call.limitFields(
            maxSize: engine.configuration.maxFileSize,
            lifetime: engine.configuration.sessionLifetime.components.seconds)
    }

    /// Whole seconds until the upload expires.
    private func secondsLeft(of view: UploadView) -> Int64 {
        let left = view.expiresAt.millisecondsSinceEpoch - engine.now.millisecondsSinceEpoch
        return max(0, left / 1000)
    }
}
