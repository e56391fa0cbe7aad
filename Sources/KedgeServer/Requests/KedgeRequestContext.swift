internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel
internal import NIOCore

/// The state of a request in middleware and handlers.
package struct KedgeRequestContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel
    /// The connection below the channel; nil when there is none, as in a simulation.
    let connection: RawConnection?
    /// The client address to whose share the request counts.
    var address = ClientAddress.unknown
    /// The complete address of the client; nil when there is none.
    var clientBytes: [UInt8]?
    /// The refusal of the page from which the request comes, unless its link permits the page; nil
    /// where the page is permitted.
    var pageRefusal: EngineError?
    /// The page that the link of the request permits.
    let linkedOrigin = LinkedOrigin()
    private var authenticated: Principal?
    /// Identifies the request in the response and in the log.
    var requestID = ""
    /// Log metadata that the handler adds to the request's log line.
    let logMetadata = RequestLogMetadata()

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
        connection = RawConnection.current
    }

    /// Pattern of the route; `unknown` where there is none.
    var route: String {
        // Hummingbird has a name for the handler of all other paths.
        endpointPath.flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "unknown"
    }

    /// The principal of the request, which has the access of the route.
    ///
    /// A handler of a public route has none, and must not ask for it.
    var principal: Principal {
        guard let authenticated else {
            preconditionFailure("a public route has no principal")
        }
        return authenticated
    }

    /// The owner whose sessions and files the request uses.
    ///
    /// A link is for one session or file. At every other one, the request acts for an owner that
    /// does not exist, so that the answer is that of an unknown id, in each protocol.
    var owner: OwnerID { isAtObjectOfLink ? principal.owner : Self.nonexistentOwner }

    /// The name is empty, which no principal can have.
    private static let nonexistentOwner = OwnerID("")

    /// False where the path names another session or file than the link.
    private var isAtObjectOfLink: Bool {
        switch principal.link?.grant {
        case .session(let linked): names(linked.session.text, as: "sessionId")
        case .get(let linked): names(linked.file.text, as: "fileId")
        case .put, nil: true
        }
    }

    /// Whether the path names this id, or has no such parameter.
    private func names(_ id: String, as parameter: String) -> Bool {
        let named = parameters.get(parameter)
        return named == nil || named == id
    }

    /// Refuses the link of a session that became a file more than a day ago.
    ///
    /// - Throws: `LINK_EXPIRED`.
    func requireLink(after file: FileRecord, at now: Timestamp) throws {
        guard case .session? = principal.link?.grant,
            now >= file.createdAt.advanced(by: Self.timeAfterCompletion)
        else { return }
        throw EngineError(.linkExpired, "The upload was completed more than a day ago.")
    }

    /// Time for which the link of a session answers after the session has become a file.
    private static let timeAfterCompletion = Duration.seconds(24 * 3600)

    /// Returns the context with a principal whose access to the route was checked.
    func with(_ principal: Principal?) -> KedgeRequestContext {
        var context = self
        context.authenticated = principal
        return context
    }

    /// Requires an access beyond that of the route.
    ///
    /// - Throws: `FORBIDDEN`.
    func requireAccess(_ access: Access) throws {
        do {
            try principal.require(access)
        } catch {
            throw EngineError(error.code, error.sentence)
        }
    }

    /// Address of the client; nil when there is no connection.
    var client: ClientAddress? {
        address == .unknown ? nil : address
    }

    /// The session named in the path.
    ///
    /// - Throws: `SESSION_NOT_FOUND` for text that no session can have as its id.
    func sessionID() throws -> SessionID {
        guard let id = SessionID(parameters.get("sessionId") ?? "") else {
            throw EngineError(.sessionNotFound)
        }
        return id
    }

    /// The file named in the path.
    ///
    /// - Throws: `FILE_NOT_FOUND` for text that no file can have as its id.
    func fileID() throws -> FileID {
        guard let id = FileID(parameters.get("fileId") ?? "") else {
            throw EngineError(.fileNotFound)
        }
        return id
    }
}
