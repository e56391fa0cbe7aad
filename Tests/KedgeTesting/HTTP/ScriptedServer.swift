internal import Glibc
internal import KedgeLocks

/// A server on 127.0.0.1 that runs one script for every connection, on a thread of its own.
///
/// Scripts speak raw bytes, so that they can misbehave in ways that no real server would.
package final class ScriptedServer: Sendable {
    private let socket: ListeningSocket

    package var port: UInt16 { socket.port }

    /// Binds a free port. Connections are refused until ``start(_:)``.
    package init() throws { socket = try ListeningSocket() }

    /// Accepts connections at a free port from now on.
    package init(_ script: @escaping @Sendable (LoopbackConnection) -> Void) {
        do {
            socket = try ListeningSocket()
        } catch {
            preconditionFailure("\(error)")
        }
        start(script)
    }

    /// Ends the accepting thread. Accepted connections go on.
    deinit { socket.stop() }

    /// Accepts connections from now on.
    ///
    /// - Parameter script: Gets a connection, which is closed when it returns.
    package func start(_ script: @escaping @Sendable (LoopbackConnection) -> Void) {
        socket.listen()
        let hasStarted = DetachedThread.start { [socket] in
            while let number = LoopbackSocket.accept(socket.number) {
                let hasThread = DetachedThread.start {
                    let connection = LoopbackConnection(socket: number)
                    script(connection)
                    connection.close()
                }
                if !hasThread { close(number) }
            }
            socket.close()
        }
        precondition(hasStarted, "the system has a thread")
    }

    package func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }

    /// Finds a port at which no process listens at the moment.
    package static func closedPort() throws -> UInt16 {
        let socket = try ListeningSocket()
        socket.stop()
        return socket.port
    }
}
