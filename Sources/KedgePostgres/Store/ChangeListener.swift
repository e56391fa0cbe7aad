internal import KedgeIdentity
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
    }

    /// Longest single wait for a notification, and so the longest delay of a stop.
    private static let step: Duration = .milliseconds(500)
    /// Time after which a silent connection is probed.
    private static let silenceLimit: Duration = .seconds(30)

    private let sessions = NotificationStreams<SessionID>()
    private let identities = NotificationStreams<IdentityChange>()
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

    /// Returns a stream of the changed sessions from now on.
    func changeNotifications() -> AsyncStream<SessionID> {
        let stream = sessions.makeStream()
        start()
        return stream
    }

    /// Returns a stream of the changed tokens and owners from now on.
    func identityChanges() -> AsyncStream<IdentityChange> {
        let stream = identities.makeStream()
        start()
        return stream
    }

    /// Starts the thread, once.
    private func start() {
        let mustStart = state.withLock { state in
            defer { state.isStarted = true }
            return !state.isStopped && !state.isStarted
        }
        if mustStart, !DetachedThread.start({ self.work() }) {
            onNotice("change notifications unavailable: no thread to listen on")
        }
    }

    /// Ends the streams at once, and the thread within half a second.
    func stop() {
        state.withLock { $0.isStopped = true }
        sessions.finish()
        identities.finish()
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
                try connection.script(
                    "LISTEN \(PostgresConnection.channel);"
                        + " LISTEN \(PostgresConnection.identityChannel)")
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
            let notifications = try connection.notifications(until: .after(Self.step))
            if notifications.isEmpty, silenceEnd.isOver { try connection.script("SELECT 1") }
            if !notifications.isEmpty || silenceEnd.isOver {
                silenceEnd = .after(Self.silenceLimit)
            }
            for notification in notifications { publish(notification) }
        }
    }

    private func publish(_ notification: PostgresConnection.Notification) {
        if notification.channel == PostgresConnection.identityChannel {
            if let change = IdentityChange(text: notification.payload) {
                identities.publish(change)
            }
        } else if let id = SessionID(notification.payload) {
            sessions.publish(id)
        }
    }
}
