internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel
internal import NIOCore

/// The state of a request in middleware and handlers.
package struct KedgeRequestContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel
    /// The connection below the channel; nil when there is none, as in a simulation.
    let connection: RawConnection?
    /// The principal of the request, set by ``RequestGate`` before any route runs.
    var principal = Principal.anonymous
    /// Identifies the request in the response and in the log.
    var requestID = ""
    /// Log metadata that the handler adds to the request's log line.
    let logMetadata = RequestLogMetadata()

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
        connection = RawConnection.current
    }

    /// Address of the client; nil when there is no connection.
    var client: ClientAddress? {
        principal.address == .unknown ? nil : principal.address
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

/// The owner that a request acts for, and its client address.
struct Principal: Sendable {
    let owner: OwnerID
    /// The client address to whose share the request counts.
    var address = ClientAddress.unknown

    static let anonymous = Principal(owner: .anonymous)
}
