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
    var owner: OwnerID { principal.owner }

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
