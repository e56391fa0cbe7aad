internal import Dispatch
internal import Glibc
internal import KedgeLocks

/// A proxy between a store and its server that cuts a connection around a COMMIT on request.
package final class CommitCutter: Sendable {
    package enum Cut: Sendable {
        /// The server commits, and its answer is lost.
        case answer
        /// The server never sees the COMMIT.
        case question
    }

    private let listener: LoopbackListener
    private let upstreamPort: UInt16
    private let cut = Mutex<(kind: Cut, then: @Sendable () -> Void)?>(nil)

    package var port: UInt16 { listener.port }

    package init(upstreamPort: UInt16) throws {
        self.upstreamPort = upstreamPort
        listener = try LoopbackListener()
        listener.start { [self] client in
            guard let server = Loopback.connect(to: upstreamPort) else { return }
            let connection = CarriedConnection(client: client, server: server)
            let answers = DispatchSemaphore(value: 0)
            let hasStarted = DetachedThread.start {
                Self.carryAnswers(of: connection)
                answers.signal()
            }
            precondition(hasStarted, "the system has a thread")
            carryQuestions(of: connection)
            // The number of a closed socket may soon be another connection's.
            answers.wait()
            close(server)
        }
    }

    /// Refuses new connections. Open ones end when either side closes.
    package func stop() { listener.stop() }

    /// Cuts the next connection that commits.
    ///
    /// - Parameter then: Runs after the cut, before the client hears of it.
    package func cutNextCommit(_ kind: Cut, then: @escaping @Sendable () -> Void = {}) {
        cut.withLock { $0 = (kind, then) }
    }

    private func carryQuestions(of connection: CarriedConnection) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(connection.client, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            // A simple query: its letter, four bytes of length, the text.
            let isCommit =
                buffer[0] == UInt8(ascii: "Q") && buffer[5..<11].elementsEqual("COMMIT".utf8)
            let order = isCommit ? takeOrder() : nil
            if order != nil { connection.mute() }
            if order?.kind != .question {
                send(connection.server, buffer, count, Int32(MSG_NOSIGNAL))
            }
            if let order {
                if order.kind == .answer { connection.awaitAnswer() }
                order.then()
                break
            }
        }
        connection.cut()
    }

    private static func carryAnswers(of connection: CarriedConnection) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(connection.server, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            if connection.swallowsAnswer() { continue }
            send(connection.client, buffer, count, Int32(MSG_NOSIGNAL))
        }
        connection.cut()
    }

    private func takeOrder() -> (kind: Cut, then: @Sendable () -> Void)? {
        cut.withLock { order in
            defer { order = nil }
            return order
        }
    }
}

/// State that both directions of a connection share.
private final class CarriedConnection: Sendable {
    let client: Int32
    let server: Int32
    private let isMute = Mutex(false)
    private let answer = DispatchSemaphore(value: 0)

    init(client: Int32, server: Int32) {
        self.client = client
        self.server = server
    }

    /// Ends both sides.
    func cut() {
        shutdown(client, Int32(SHUT_RDWR))
        shutdown(server, Int32(SHUT_RDWR))
    }

    /// Swallows answers from now on.
    func mute() { isMute.withLock { $0 = true } }

    /// Whether an answer must not arrive.
    func swallowsAnswer() -> Bool {
        guard isMute.withLock({ $0 }) else { return false }
        answer.signal()
        return true
    }

    /// Waits until an answer was swallowed.
    func awaitAnswer() { answer.wait() }
}
