internal import Glibc

/// Sockets of the loopback address.
enum BenchSocket {
    static func connect(to port: UInt16) throws -> Descriptor {
        let socket = try make()
        let status = withAddress(port) { Glibc.connect(socket.number, $0, $1) }
        guard status == 0 else { throw BenchFailure.system("connect to port \(port)") }
        // A head and a small body must not wait for each other's acknowledgement.
        var on: Int32 = 1
        setsockopt(
            socket.number, Int32(IPPROTO_TCP), TCP_NODELAY, &on,
            socklen_t(MemoryLayout<Int32>.size))
        return socket
    }

    /// Makes a socket that listens on a port chosen by the system.
    static func listen() throws -> (socket: Descriptor, port: UInt16) {
        let socket = try make()
        guard withAddress(0, { bind(socket.number, $0, $1) }) == 0,
            Glibc.listen(socket.number, 16) == 0
        else { throw BenchFailure.system("listen") }
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutableBytes(of: &address) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) {
                getsockname(socket.number, $0.baseAddress, &size)
            }
        }
        guard status == 0 else { throw BenchFailure.system("ask for the port") }
        return (socket, UInt16(bigEndian: address.sin_port))
    }

    /// Finds a free port. When another process takes it first, the server fails to start.
    static func freePort() throws -> UInt16 {
        try listen().port
    }

    private static func make() throws -> Descriptor {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        return try Descriptor(socket(AF_INET, kind, 0), "make a socket")
    }

    private static func withAddress(
        _ port: UInt16, _ body: (UnsafePointer<sockaddr>?, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        return withUnsafeBytes(of: &address) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) {
                body($0.baseAddress, socklen_t(bytes.count))
            }
        }
    }
}
