internal import Glibc
internal import KedgeLocks

/// Listens on 127.0.0.1 and gives each connection to a script on a thread of its own.
package final class LoopbackListener: Sendable {
    package let port: UInt16
    private let socket: ListeningSocket

    package var url: String { "http://127.0.0.1:\(port)" }

    /// Binds a free port. Connections are refused until ``start(_:)``.
    package init() throws {
        let (listener, port) = try Loopback.bound()
        socket = ListeningSocket(listener)
        self.port = port
    }

    /// - Parameter script: Gets the socket, which is closed when it returns.
    package convenience init(_ script: @escaping @Sendable (Int32) -> Void) throws {
        try self.init()
        start(script)
    }

    /// Ends the accepting thread.
    deinit { socket.stop() }

    /// Accepts connections from now on.
    package func start(_ script: @escaping @Sendable (Int32) -> Void) {
        socket.listen()
        let hasStarted = DetachedThread.start { [socket] in
            while let connection = Loopback.accept(socket.number) {
                let hasThread = DetachedThread.start {
                    script(connection)
                    close(connection)
                }
                if !hasThread { close(connection) }
            }
            socket.close()
        }
        precondition(hasStarted, "the system has a thread")
    }

    /// Refuses connections from now on. Accepted ones go on.
    package func stop() { socket.stop() }

    /// Finds a port at which no process listens at the moment.
    package static func closedPort() throws -> UInt16 {
        let (listener, port) = try Loopback.bound()
        close(listener)
        return port
    }
}

/// A socket that the thread which accepts from it closes, and others only shut down. After the close
/// its number may be another socket's, so nothing uses it any more.
private final class ListeningSocket: Sendable {
    private enum State { case bound, listening, closed }

    let number: Int32
    private let state = Mutex(State.bound)

    init(_ number: Int32) { self.number = number }

    func listen() {
        state.withLock { state in
            let result = Glibc.listen(number, 64)
            precondition(state == .bound && result == 0, "a listener starts once")
            state = .listening
        }
    }

    /// Makes the accepting thread end; without one, closes the socket.
    func stop() {
        state.withLock { state in
            switch state {
            case .bound:
                Glibc.close(number)
                state = .closed
            case .listening: shutdown(number, Int32(SHUT_RDWR))
            case .closed: break
            }
        }
    }

    func close() {
        state.withLock { state in
            if state != .closed { Glibc.close(number) }
            state = .closed
        }
    }
}
