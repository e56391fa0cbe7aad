internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// Uploads by tus 1.0 (https://tus.io/protocols/resumable-upload): each is a session, and, once its last
/// byte is durable, a file. The methods are in files of their own.
struct TusRoutes: Sendable {
    let engine: TransferEngine
    let endpoint: EndpointPath
    /// Where clients find the server.
    var address = PublicAddress.ofRequests

    private typealias Handler =
        @Sendable (Request, KedgeRequestContext) async throws -> Response

    var routes: [Route] {
        let upload = "\(endpoint){sessionId}"
        return [
            route(.options, "\(endpoint)", version: .ignored, options),
            route(.post, "\(endpoint)", create),
            route(.options, upload, version: .ignored, options),
            route(.get, upload, version: .optional, download),
            route(.head, upload, head),
            route(.patch, upload, patch),
            route(.delete, upload, terminate),
        ]
    }

    /// What `Tus-Resumable` means to a method.
    private enum VersionRule {
        case required
        /// A browser that is sent to an upload says no version.
        case optional
        /// Who asks what there is cannot know yet (section "OPTIONS").
        case ignored
    }

    private func route(
        _ method: HTTPRequest.Method, _ path: String, version: VersionRule = .required,
        _ handle: @escaping Handler
    ) -> Route {
        Route(method, path) { request, context in
            do {
                try Self.requireVersion(version, of: request)
                return try await handle(request, context)
            } catch {
                throw TusErrors.translated(error)
            }
        }
    }

    /// - Throws: `UPLOAD_VERSION_UNSUPPORTED`.
    private static func requireVersion(_ rule: VersionRule, of request: Request) throws {
        let version = request.headers[TusField.resumable]
        let isRight =
            switch rule {
            case .required: version == TusField.supportedVersion
            case .optional: version == nil || version == TusField.supportedVersion
            case .ignored: true
            }
        guard isRight else { throw EngineError(.uploadVersionUnsupported) }
    }

    /// What belongs to every answer of the endpoint, refusals before any route included.
    func complete(_ response: inout Response, to request: Request) {
        guard endpoint.contains(request.uri.path) else { return }
        response.headers[TusField.resumable] = TusField.supportedVersion
    }

    /// The upload that the path names.
    ///
    /// - Throws: `SESSION_NOT_FOUND`, also for one that was terminated; `SESSION_EXPIRED`; `FILE_GONE` when
    ///   it is a file that was deleted, `FILE_DAMAGED` when it is one whose copy is.
    func upload(
        _ context: KedgeRequestContext, stopsAppend: Bool = false
    ) async throws -> TusUpload {
        let id = try context.sessionID()
        context.notes.set("session.id", id)
        return try await upload(id, stopsAppend: stopsAppend, context)
    }

    /// The upload with this id.
    ///
    /// - Parameters:
    ///   - stopsAppend: Ends a request that is still appending, and counts what it brought.
    ///   - isDamagedTaken: Whether one whose file is damaged is an upload like any other.
    /// - Throws: As ``upload(_:stopsAppend:)``.
    func upload(
        _ id: SessionID, stopsAppend: Bool = false, isDamagedTaken: Bool = false,
        _ context: KedgeRequestContext
    ) async throws -> TusUpload {
        let view: UploadView
        do {
            view = try await engine.uploadView(
                of: id, owner: context.principal.owner, stopsAppend: stopsAppend)
        } catch let error as EngineError where error.code == .sessionClosed {
            throw EngineError(.sessionNotFound)
        }
        switch view.state {
        case .open, .finalizing: return TusUpload(view)
        case .completed:
            // With its file the upload is gone, whatever is asked of it.
            if let file = view.fileID {
                do {
                    _ = try await engine.file(file, owner: context.principal.owner)
                } catch let error as EngineError
                    where error.code == .fileDamaged && isDamagedTaken
                {
                    // The caller deletes the file, and needs no byte of it.
                }
            }
            return TusUpload(view)
        case .expired: throw EngineError(.sessionExpired)
        case .canceled, .failed: throw EngineError(.sessionNotFound)
        }
    }

    /// The file that a whole upload is, made now if that was interrupted; nil while bytes are missing, and
    /// for a part of another upload.
    ///
    /// - Throws: `FILE_GONE`, and what finalizing throws.
    func file(of upload: TusUpload, _ context: KedgeRequestContext) async throws -> FileRecord? {
        let owner = context.principal.owner
        guard upload.isWhole, !upload.isPartial else { return nil }
        let file: FileRecord
        if upload.view.state == .completed, let id = upload.view.fileID {
            file = try await engine.file(id, owner: owner)
        } else {
            file = try await engine.finish(upload.view.id, owner: owner, expecting: nil)
        }
        context.notes.set("file.id", file.id)
        return file
    }
}
