internal import KedgeModel

/// The part of a finalize that depends on the byte store. Chosen once, with the store.
protocol FinalizeMode: Sendable {
    /// Whether a finalize goes on after its request was answered "pending", as a job that another
    /// node can take over.
    var outlivesRequest: Bool { get }

    /// Begins the finalize of a session that has all of its bytes, before the wait for their hash.
    ///
    /// - Returns: ``FinalizeStart/begun`` when this node finalizes; ``end(_:)`` must follow then.
    func begin(_ attempt: FinalizeAttempt, of session: LiveSession) async throws -> FinalizeStart

    /// Ends an attempt that has begun.
    func end(_ attempt: FinalizeAttempt)

    /// Hashes the rest of a file when this node has not received all of its bytes.
    ///
    /// - Returns: False while the hash is incomplete.
    func hashRest(of session: LiveSession, byteCount: Int64) async throws -> Bool

    /// Discards the job of a finalize whose error was the answer to the client.
    func discardJob(of attempt: FinalizeAttempt) async throws
}

/// One call of ``Finalizer/finalize(_:owner:expecting:)``.
struct FinalizeAttempt: Sendable {
    let id: SessionID
    let owner: OwnerID
    /// The digest that the client expects of the file.
    let expected: SHA256Digest?
    /// True once ``FinalizeMode/begin(_:of:)`` has answered ``FinalizeStart/begun``.
    var hasBegun = false
}

/// The result of beginning a finalize.
enum FinalizeStart: Sendable {
    /// This node finalizes the session.
    case begun
    /// Another node finalizes the session now.
    case onOtherNode
    /// Another node has ended the finalize meanwhile; the session has its result.
    case over
}
