internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// Tells a client in 104 answers how far its upload has come, while the body still comes.
struct UploadProgress: Sendable {
    /// Time between two of them. Clients free what they need not send again, and draw a bar; neither
    /// gains by more.
    private static let interval = Duration.seconds(1)

    let engine: TransferEngine
    let id: SessionID
    let owner: OwnerID
    let call: ResumableUploadCall
    /// Nil when the client is to be told nothing.
    let interim: InterimResponses?

    /// Runs an append and reports meanwhile. Nothing is sent after it has returned.
    ///
    /// - Parameters:
    ///   - body: What the append reads.
    ///   - offset: Where the body starts in the file.
    func reporting<Result: Sendable>(
        _ body: CountedBody, from offset: Int64, _ append: () async throws -> Result
    ) async throws -> Result {
        guard let interim, call.isVersionNamed, call.dialect.reportsProgress else {
            return try await append()
        }
        // Cancelled and awaited where this ends.
        async let _ = report(body, from: offset, to: interim)
        return try await append()
    }

    private func report(
        _ body: CountedBody, from start: Int64, to interim: InterimResponses
    ) async {
        var last = start
        while await pause() {
            // A failure to look is not the client's: the append goes on, or fails with its own error.
            guard let view = try? await engine.uploadView(of: id, owner: owner) else { continue }
            // A client may forget bytes of which it is told: they are durable, and it has sent them. Those
            // that somebody else has saved ahead of it may turn out to be others.
            let offset = min(view.offset, start + body.readByteCount)
            guard !Task.isCancelled, offset > last else { continue }
            last = offset
            var head = ResumableUploadRoutes.interimHead(call)
            head.headerFields[.uploadOffset] = String(last)
            interim.send(head)
        }
    }

    /// False when the append has ended.
    private func pause() async -> Bool {
        // Cancellation is the only error, and it is the answer.
        (try? await Task.sleep(for: Self.interval)) != nil
    }
}
