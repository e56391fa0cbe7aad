internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel
internal import NIOCore

/// What travels with a request through middleware and handlers.
struct KedgeRequestContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let channel: any Channel
    /// What is below the channel; nil where there is no connection, as in a simulation.
    let connection: RawConnection?
    /// Who asks; set at one gate before any route runs.
    var principal = Principal.anonymous
    /// Names the request in the answer and in the log.
    var requestID = ""
    /// Facts that the handler adds to the request's log line.
    let notes = RequestNotes()

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
        connection = RawConnection.current
    }

    /// Where the request comes from; nil where there is no connection.
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

/// Who a request acts for.
struct Principal: Sendable {
    let owner: OwnerID
    /// Where it comes from, as far as shares go.
    var address = ClientAddress.unknown

    static let anonymous = Principal(owner: .anonymous)
}
