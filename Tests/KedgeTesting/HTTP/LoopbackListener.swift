internal import Glibc
internal import KedgeLocks

/// Listens on 127.0.0.1 and gives each connection to a script on a thread of its own.
package final class LoopbackListener: Sendable {
    package let port: UInt16
    private let listener: Int32
    private let isStarted = Mutex(false)

    package var url: String { "http://127.0.0.1:\(port)" }

    /// Binds a free port. Connections are refused until ``start(_:)``.
    package init() throws { (listener, port) = try Loopback.bound() }

    /// - Parameter script: Gets the socket, which is closed when it returns.
    package convenience init(_ script: @escaping @Sendable (Int32) -> Void) throws {
        try self.init()
        start(script)
    }

    /// Ends the accepting thread, which then closes the socket.
    deinit {
        if isStarted.withLock({ $0 }) { stop() } else { close(listener) }
    }

    /// Accepts connections from now on.
    package func start(_ script: @escaping @Sendable (Int32) -> Void) {
        isStarted.withLock { $0 = true }
        let listener = listener
        listen(listener, 64)
        let hasStarted = DetachedThread.start {
            while let socket = Loopback.accept(listener) {
                let hasThread = DetachedThread.start {
                    script(socket)
                    close(socket)
                }
                if !hasThread { close(socket) }
            }
            close(listener)
        }
        precondition(hasStarted, "the system has a thread")
    }

    /// Refuses connections from now on. Accepted ones go on.
    package func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    /// Finds a port at which no process listens at the moment.
    package static func closedPort() throws -> UInt16 {
        let (listener, port) = try Loopback.bound()
        close(listener)
        return port
    }
}
