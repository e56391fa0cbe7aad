internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Uploads by tus 1.0 (https://tus.io/protocols/resumable-upload). Each upload is a session, and
/// becomes a file once its last byte is durable. The methods are in their own files.
struct TusRoutes: Sendable {
    let engine: TransferEngine
    let endpoint: EndpointPath
    var address = PublicAddress.ofRequests
    var links = SessionLinks.none

    var routes: [Route] {
        let upload = "\(endpoint){sessionId}"
        return [
            route(.options, "\(endpoint)", .public, version: .ignored, options),
            route(.post, "\(endpoint)", .anyOf(.uploadsWrite, links: [.put]), create),
            route(.options, upload, .public, version: .ignored, options),
            route(
                .get, upload, .anyOf(.filesRead, links: [.get]), version: .optional, download),
            route(.head, upload, .anyOf(.uploadsRead, .uploadsWrite, links: [.session]), head),
            route(.patch, upload, .anyOf(.uploadsWrite, links: [.session]), patch),
            route(.delete, upload, .anyOf(.uploadsWrite, links: [.session]), terminate),
        ]
    }

    /// The requirement of a method for `Tus-Resumable`.
    private enum VersionRule {
        case required
        /// A browser that opens an upload sends no version.
        case optional
        /// The client cannot know the version yet (section "OPTIONS").
        case ignored
    }

    private func route(
        _ method: HTTPRequest.Method, _ path: String, _ access: Access,
        version: VersionRule = .required, _ handle: @escaping Route.Handler
    ) -> Route {
        Route(method, path, access) { request, context in
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

    /// Adds the field that every response of the endpoint must have, including refusals before any
    /// route.
    func complete(_ response: inout Response, to request: Request) {
        guard endpoint.contains(request.uri.path) else { return }
        response.headers[TusField.resumable] = TusField.supportedVersion
    }

    /// Returns the upload that the path names.
    ///
    /// - Throws: `SESSION_NOT_FOUND`, also for a terminated upload; `SESSION_EXPIRED`; `FILE_GONE`
    ///   when its file was deleted; `FILE_DAMAGED` when its file is damaged.
    func upload(
        _ context: KedgeRequestContext, stopsAppend: Bool = false
    ) async throws -> TusUpload {
        let id = try context.sessionID()
        context.logMetadata.set("session.id", id)
        return try await upload(id, stopsAppend: stopsAppend, context)
    }

    /// Returns the upload with this id.
    ///
    /// - Parameters:
    ///   - stopsAppend: Whether to stop a running append first. Its bytes count.
    ///   - isDamagedTaken: Whether to return an upload whose file is damaged.
    /// - Throws: As ``upload(_:stopsAppend:)``.
    func upload(
        _ id: SessionID, stopsAppend: Bool = false, isDamagedTaken: Bool = false,
        _ context: KedgeRequestContext
    ) async throws -> TusUpload {
        let view: UploadView
        do {
            view = try await engine.uploadView(
                of: id, owner: context.owner, stopsAppend: stopsAppend)
        } catch let error as EngineError where error.code == .sessionClosed {
            throw EngineError(.sessionNotFound)
        }
        switch view.state {
        case .open, .finalizing: return TusUpload(view)
        case .completed:
            // Without its file, a completed upload is gone for every method.
            if let file = view.fileID {
                do {
                    try context.requireLink(
                        after: try await engine.file(file, owner: context.owner), at: engine.now)
                } catch let error as EngineError
                    where error.code == .fileDamaged && isDamagedTaken
                {
                    // The caller deletes the file and needs none of its bytes.
                }
            }
            return TusUpload(view)
        case .expired: throw EngineError(.sessionExpired)
        case .canceled, .failed: throw EngineError(.sessionNotFound)
        }
    }

    /// The file of a complete upload, created now if that was interrupted. Nil while bytes are
    /// missing, and for a partial upload.
    ///
    /// - Throws: `FILE_GONE`, and errors of finalizing.
    func file(of upload: TusUpload, _ context: KedgeRequestContext) async throws -> FileRecord? {
        let owner = context.owner
        guard upload.isWhole, !upload.isPartial else { return nil }
        let file: FileRecord
        if upload.view.state == .completed, let id = upload.view.fileID {
            file = try await engine.file(id, owner: owner)
        } else {
            file = try await engine.finish(upload.view.id, owner: owner, expecting: nil)
        }
        context.logMetadata.set("file.id", file.id)
        return file
    }
}
