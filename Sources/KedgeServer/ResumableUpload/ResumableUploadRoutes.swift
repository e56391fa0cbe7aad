internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// Uploads as draft-ietf-httpbis-resumable-upload has them. `POST /files` makes one, see
/// ``create(_:_:_:)``; its own address is `/uploads/resumable/{sessionId}`.
///
/// The upload is a session like any other, so what one dialect began another may go on with.
struct ResumableUploadRoutes: Sendable {
    let engine: TransferEngine

    static let uploadPath = "/uploads/resumable/{sessionId}"
    /// The session's metadata that keeps the interop number of the request that began it.
    static let versionKey = "kedge.ietf.version"

    /// Every operation, for the list of routes.
    var routes: [Route] {
        [
            Route(.options, "/files", options),
            Route(.options, Self.uploadPath, options),
            Route(.head, Self.uploadPath, state),
            Route(.get, Self.uploadPath, state),
            Route(.patch, Self.uploadPath, append),
            Route(.delete, Self.uploadPath, cancel),
        ]
    }

    static func location(of id: SessionID) -> String { "/uploads/resumable/\(id)" }

    /// The head of a 104 in the dialect of a request.
    static func interimHead(_ call: ResumableUploadCall) -> HTTPResponse {
        HTTPResponse(
            status: HTTPResponse.Status(code: 104, reasonPhrase: "Upload Resumption Supported"),
            headerFields: call.versionFields)
    }

    /// `OPTIONS`: that uploads can be resumed here, and the limits.
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
        if let type = call.dialect.appendMediaType { response.headers[.acceptPatch] = type }
        return response
    }

    /// `HEAD` and `GET`: how far the upload has come.
    @Sendable func state(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        try await withUpload(request, context) { known, call in
            // The client that asks has given up an append that may still be under way here, and the
            // offset that it is told must be the one at which it can go on.
            let view = try await stopped(known, context)
            let isComplete = view.state == .completed
            if isComplete, let file = view.fileID {
                try await DialectError.tellingDamageAsGone(fields: call.versionFields) {
                    do {
                        _ = try await engine.file(file, owner: context.principal.owner)
                    } catch let error as EngineError where error.code == .fileGone {
                        // The upload was completed all the same.
                    }
                }
            }
            // There is nowhere to go on in one that is made of parts.
            let offset = isComplete || view.parts == nil ? view.offset : nil
            var response = Response(status: .noContent)
            response.headers.set(call.stateFields(isComplete: isComplete, offset: offset))
            response.headers.set(
                call.limitFields(
                    maxSize: engine.configuration.maxFileSize,
                    lifetime: isComplete ? nil : secondsLeft(of: view)))
            if call.dialect.hasLengthAndLimits, let size = view.fileSize {
                response.headers[.uploadLength] = String(size)
            }
            // Who has missed the answer that completed the upload finds what it said here.
            if isComplete, let file = view.fileID {
                response.headers[.contentLocation] = "/files/\(file)"
                response.headers[.reprDigest] = view.finalDigest.map(DigestHeader.rfc9530)
            }
            return response
        }
    }

    /// `DELETE`: gives the upload up. Asked again, it answers that there is none.
    @Sendable func cancel(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        try await withUpload(request, context) { view, call in
            try await engine.cancelSession(view.id, owner: context.principal.owner)
            return Response(status: .noContent, headers: call.versionFields)
        }
    }

    /// Runs a handler on the upload that the path names, in the dialect in which the upload was begun when
    /// the request names none. Errors are told in that dialect, too.
    ///
    /// - Throws: What ``view(of:_:stopsAppend:)`` throws, and the handler.
    func withUpload(
        _ request: Request, _ context: KedgeRequestContext,
        _ handle: (UploadView, ResumableUploadCall) async throws -> Response
    ) async throws -> Response {
        let id = try context.sessionID()
        context.notes.set("session.id", id)
        var call = ResumableUploadCall(request.headers)
        let view: UploadView
        do {
            view = try await self.view(of: id, context)
        } catch let error as EngineError {
            throw errors(call, context).dialectError(error)
        }
        if !call.isVersionNamed, let begun = Self.dialect(of: view) { call.dialect = begun }
        let errors = errors(call, context, isComplete: view.state == .completed)
        return try await errors.answering { try await handle(view, call) }
    }

    /// What is known of an upload.
    ///
    /// - Throws: `SESSION_NOT_FOUND`, also when it was canceled: then there is no upload; `SESSION_EXPIRED`.
    func view(
        of id: SessionID, _ context: KedgeRequestContext, stopsAppend: Bool = false
    ) async throws -> UploadView {
        do {
            return try await engine.uploadView(
                of: id, owner: context.principal.owner, stopsAppend: stopsAppend)
        } catch let error as EngineError where error.code == .sessionClosed {
            throw EngineError(.sessionNotFound)
        }
    }

    /// The upload after an append that may have been under way: with all that it brought, so that the offset
    /// holds until somebody else sends.
    ///
    /// What is appended to an upload that is made of parts is a copy of them, which is nobody's to stop.
    func stopped(_ view: UploadView, _ context: KedgeRequestContext) async throws -> UploadView {
        guard view.parts == nil else { return view }
        return try await self.view(of: view.id, context, stopsAppend: true)
    }

    /// The dialect of the request that began an upload; nil when it named none, or came through another door.
    private static func dialect(of view: UploadView) -> ResumableUploadDialect? {
        view.metadata[versionKey].flatMap { WireInteger.parse($0) }
            .flatMap(ResumableUploadDialect.init(interopVersion:))
    }

    func errors(
        _ call: ResumableUploadCall, _ context: KedgeRequestContext, isComplete: Bool = false
    ) -> ResumableUploadErrors {
        ResumableUploadErrors(
            call: call, context: context, isComplete: isComplete, limits: limits(call))
    }

    /// The limits of an upload that begins or has brought bytes now.
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
