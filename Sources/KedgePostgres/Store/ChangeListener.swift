internal import KedgeLocks
internal import KedgeModel

/// Receives change notifications of other nodes, on its own connection and thread.
///
/// Notifications are best effort: those sent while the connection is down are lost and not
/// repeated.
final class ChangeListener: Sendable {
    private struct State {
        var isStopped = false
        var isStarted = false
        var nextKey = 0
        var streams: [Int: AsyncStream<SessionID>.Continuation] = [:]
    }

    /// Longest single wait for a notification, and so the longest delay of a stop.
    private static let step: Duration = .milliseconds(500)
    /// Time after which a silent connection is probed.
    private static let silenceLimit: Duration = .seconds(30)
    /// Notifications that may wait for a slow reader; the oldest are discarded first.
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

    /// Returns a stream of the notifications from now on. The first call starts the thread.
    func changeNotifications() -> AsyncStream<SessionID> {
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
            onNotice("change notifications unavailable: no thread to listen on")
        }
        return stream
    }

    /// Ends the streams at once, and the thread within half a second.
    func stop() {
        let streams = state.withLock { state in
            state.isStopped = true
            return Array(state.streams.values)
        }
        for stream in streams { stream.finish() }
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private func work() {
        // The listener does not set the store's clock; connections of operations do.
        let link = ReconnectingConnection(
            string, configuration: configuration, clock: DatabaseClock(), onNotice: onNotice)
        // Limits the log to one entry per outage.
        var isSilent = false
        while !isStopped {
            do {
                let connection = try link.connected(until: .after(Self.step))
                try connection.script("LISTEN \(PostgresConnection.channel)")
                isSilent = false
                try listen(on: connection)
            } catch {
                if !isSilent { onNotice("change notifications unavailable: \(error)") }
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
            for id in payloads.compactMap({ SessionID($0) }) { publish(id) }
        }
    }

    private func publish(_ id: SessionID) {
        for stream in state.withLock({ Array($0.streams.values) }) { stream.yield(id) }
    }
}
