internal import Glibc
internal import KedgeLocks

/// Listens on 127.0.0.1 and gives each connection to a script on a thread of its own.
package final class LoopbackListener: Sendable {
    private let socket: ListeningSocket

    package var port: UInt16 { socket.port }
    package var url: String { "http://127.0.0.1:\(port)" }

    /// Binds a free port. Connections are refused until ``start(_:)``.
    package init() throws { socket = try ListeningSocket() }

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
