import Glibc
import KedgeLocks

@testable import KedgeCurl

/// A scripted HTTP server on 127.0.0.1: every connection runs one script on a thread of its own.
///
/// Scripts speak raw bytes, so that they can misbehave in ways a real server would not. Every wait
/// of a script ends after ``Connection/patienceSeconds``.
final class LoopbackServer: Sendable {
    let port: UInt16
    private let listener: Int32

    init(_ script: @escaping @Sendable (Connection) -> Void) {
        let (listener, port) = Self.listen()
        self.listener = listener
        self.port = port
        let hasStarted = DetachedThread.start {
            while true {
                let socket = accept(listener, nil, nil)
                guard socket >= 0 else { break }
                _ = DetachedThread.start {
                    let connection = Connection(socket: socket)
                    script(connection)
                    connection.close()
                }
            }
            Glibc.close(listener)
        }
        precondition(hasStarted)
    }

    /// Ends the accepting thread, which closes the listener.
    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
    }

    func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }

    /// A port that nobody listens on, at least just now.
    static func closedPort() -> UInt16 {
        let (listener, port) = listen()
        Glibc.close(listener)
        return port
    }

    private static func listen() -> (listener: Int32, port: UInt16) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                precondition(bind(listener, generic, length) == 0)
                precondition(Glibc.listen(listener, 64) == 0)
                precondition(getsockname(listener, generic, &length) == 0)
            }
        }
        return (listener, UInt16(bigEndian: address.sin_port))
    }
}
