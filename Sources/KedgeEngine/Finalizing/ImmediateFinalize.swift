internal import KedgeModel

/// The mode for stores whose bytes this node can always read, such as a local disk. A finalize is a
/// rename at the end of a request, so no job is recorded for it.
struct ImmediateFinalize: FinalizeMode {
    var outlivesRequest: Bool { false }

    func begin(_ attempt: FinalizeAttempt, of session: LiveSession) async throws -> FinalizeStart {
        .begun
    }

    func end(_ attempt: FinalizeAttempt) {}

    /// Returns false, because no other node has bytes: the hash is only late.
    func hashRest(of session: LiveSession, byteCount: Int64) async throws -> Bool { false }

    func discardJob(of attempt: FinalizeAttempt) async throws {}
}
