/// Asks for the status of a session repeatedly on its own thread, and measures the delays.
final class StatusProbe: Sendable {
    private struct Notes {
        var isStopped = false
        var hasEnded = false
        var milliseconds: [Double] = []
        var failure: (any Error)?
    }

    private let notes = SharedValue(Notes())
    private static let pauseSeconds = 0.02

    init(_ server: KedgeServer, _ content: Content) throws {
        let connection = try server.connect()
        let session = try UploadSession.create(for: content, on: connection)
        // The thread ends when ``stop()`` asks, which waits for it.
        let thread = Thread { self.ask(session, server) }
        thread.detach()
    }

    private func ask(_ session: UploadSession, _ server: KedgeServer) {
        do {
            let connection = try server.connect()
            while !notes.current.isStopped {
                let elapsed = try elapsedSeconds { _ = try session.status(on: connection) }
                notes.change { $0.milliseconds.append(elapsed * 1000) }
                pause(seconds: Self.pauseSeconds)
            }
        } catch {
            notes.change { $0.failure = error }
        }
        notes.change { $0.hasEnded = true }
    }

    /// Stops, and returns the delays in milliseconds.
    ///
    /// - Throws: The error of a failed request.
    func stop() throws -> [Double] {
        notes.change { $0.isStopped = true }
        while !notes.current.hasEnded { pause(seconds: 0.001) }
        if let failure = notes.current.failure { throw failure }
        return notes.current.milliseconds
    }
}
