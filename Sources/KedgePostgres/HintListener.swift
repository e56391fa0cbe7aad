internal import KedgeLocks
internal import KedgeModel

/// Hears what other nodes say of sessions, on a connection and a thread of its own.
///
/// Notifications are only hints: while the connection is away they are lost, and nothing is made up
/// for.
final class HintListener: Sendable {
    private struct State {
        var isStopped = false
        var isStarted = false
        var nextKey = 0
        var streams: [Int: AsyncStream<SessionID>.Continuation] = [:]
    }

    /// Longest wait for a notification at once: how late a stop is noticed.
    private static let step: Duration = .milliseconds(500)
    /// Time after which a silent connection is asked whether it is still there.
    private static let silenceLimit: Duration = .seconds(30)
    /// Hints that a slow reader may leave waiting; the oldest go first.
    private static let bufferLimit = 1024

    private let state = Mutex(State())
    private let string: ConnectionString
    private let configuration: PostgresConfiguration
    private let onNotice: @Sendable (String) -> Void

    init(
        _ string: ConnectionString, configuration: PostgresConfiguration,
        onNotice: @escaping @Sendable (String) -> Void
    ) {
        self.string = string
        self.configuration = configuration
        self.onNotice = onNotice
    }

    /// What is heard from now on. The first call begins to listen.
    func hints() -> AsyncStream<SessionID> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: SessionID.self, bufferingPolicy: .bufferingNewest(Self.bufferLimit))
        let (key, mustStart): (Int?, Bool) = state.withLock { state in
            guard !state.isStopped else { return (nil, false) }
            defer { state.isStarted = true }
            state.nextKey += 1
            state.streams[state.nextKey] = continuation
            return (state.nextKey, !state.isStarted)
        }
        guard let key else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.streams.removeValue(forKey: key) }
        }
        if mustStart, !DetachedThread.start({ self.work() }) {
            onNotice("the system has no thread to listen on; hints do not come")
        }
        return stream
    }

    /// Ends the streams, and the thread within half a second.
    func stop() {
        let streams = state.withLock { state in
            state.isStopped = true
            return Array(state.streams.values)
        }
        for stream in streams { stream.finish() }
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private func work() {
        // The clock of the store is read on the connections of its operations.
        let link = DatabaseLink(
            string, configuration: configuration, clock: DatabaseClock(), onNotice: onNotice)
        // Said once for each time that the server is away.
        var isSilent = false
        while !isStopped {
            do {
                let connection = try link.connected(until: .after(Self.step))
                try connection.script("LISTEN \(PostgresConnection.channel)")
                isSilent = false
                try listen(on: connection)
            } catch {
                if !isSilent { onNotice("hints do not come: \(error)") }
                isSilent = true
                link.disconnect()
                link.pause(upTo: .seconds(2))
            }
        }
    }

    private func listen(on connection: PostgresConnection) throws {
        var silenceEnd = Deadline.after(Self.silenceLimit)
        while !isStopped {
            let payloads = try connection.notifications(until: .after(Self.step))
            if payloads.isEmpty, silenceEnd.isOver { try connection.script("SELECT 1") }
            if !payloads.isEmpty || silenceEnd.isOver { silenceEnd = .after(Self.silenceLimit) }
            for id in payloads.compactMap({ SessionID($0) }) { tell(id) }
        }
    }

    private func tell(_ id: SessionID) {
        for stream in state.withLock({ Array($0.streams.values) }) { stream.yield(id) }
    }
}
