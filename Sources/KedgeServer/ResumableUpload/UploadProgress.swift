internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// Reports the progress of an upload in 104 responses while its body arrives.
struct UploadProgress: Sendable {
    /// Time between two reports. Clients free the bytes that they need not send again, and show the
    /// progress. Neither needs more reports.
    private static let interval = Duration.seconds(1)

    let engine: TransferEngine
    let id: SessionID
    let owner: OwnerID
    let call: ResumableUploadCall
    /// Nil when the client must not get reports.
    let interim: InterimResponses?

    /// Runs an append and reports its progress. Sends nothing after it has returned.
    ///
    /// - Parameters:
    ///   - body: The body that the append reads.
    ///   - offset: Offset of the body in the file.
    func reporting<Result: Sendable>(
        _ body: CountedBody, from offset: Int64, _ append: () async throws -> Result
    ) async throws -> Result {
        guard let interim, call.isVersionNamed, call.interopVersion.reportsProgress else {
            return try await append()
        }
        // Cancelled and awaited at the end of this scope.
        async let _ = report(body, from: offset, to: interim)
        return try await append()
    }

    private func report(
        _ body: CountedBody, from start: Int64, to interim: InterimResponses
    ) async {
        var last = start
        while await pause() {
            // A failed look-up is not the client's fault: the append continues, or fails with its
            // own error.
            guard let view = try? await engine.uploadView(of: id, owner: owner) else { continue }
            // A client may discard reported bytes, so they must be durable and its own. Bytes that
            // another client has saved ahead of it may be different ones.
            let offset = min(view.offset, start + body.readByteCount)
            guard !Task.isCancelled, offset > last else { continue }
            last = offset
            var head = ResumableUploadRoutes.interimHead(call)
            head.headerFields[.uploadOffset] = String(last)
            interim.send(head)
        }
    }

    /// Returns false when the append has ended.
    private func pause() async -> Bool {
        // Cancellation is the only error. It means that the append has ended.
        (try? await Task.sleep(for: Self.interval)) != nil
    }
}
