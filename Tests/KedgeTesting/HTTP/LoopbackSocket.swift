package import Foundation
package import KedgeLocks

/// Sockets on 127.0.0.1, closed in child processes.
package enum LoopbackSocket {
    /// Makes a bound socket. Connections are refused until it listens.
    package static func bound() throws -> (socket: Int32, port: UInt16) {
        let descriptor = try stream()
        // A small buffer keeps the number of bytes sent and not read small as well.
        set(descriptor, SO_RCVBUF, 64 << 10)
        var address = address(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(descriptor, generic, length) == 0
                    && getsockname(descriptor, generic, &length) == 0
            }
        }
        guard isBound else { throw TestFailure("no port: \(errno)") }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// Connects to a port; nil when no process listens.
    package static func connect(to port: UInt16) -> Int32? {
        guard let descriptor = try? stream() else { return nil }
        var address = address(port: port)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                Foundation.connect(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// Connects to a Unix socket; nil when no process listens. The path has at most 107 bytes.
    package static func connect(toPath path: String) -> Int32? {
        guard let descriptor = try? stream(AF_UNIX) else { return nil }
        var address = unixAddress(path)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                Foundation.connect(descriptor, generic, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    /// Leaves a Unix socket behind, as a process does that is killed.
    package static func leave(atPath path: String) throws {
        let descriptor = try stream(AF_UNIX)
        defer { close(descriptor) }
        var address = unixAddress(path)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(descriptor, generic, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else { throw TestFailure("no socket at \(path): \(errno)") }
    }

    /// Held while a descriptor is made and while a process is started. Otherwise a process could
    /// inherit a descriptor, and hold a connection open that a test believes closed.
    package static let spawning = Mutex<Void>(())

    /// Waits for the next connection.
    package static func accept(_ listener: Int32) -> Int32? {
        var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, -1) == 1 else { return nil }
        let descriptor = spawning.withLock { _ in
            let descriptor = Foundation.accept(listener, nil, nil)
            if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
            return descriptor
        }
        return descriptor >= 0 ? descriptor : nil
    }

    package static func set(_ descriptor: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Sends the bytes; false when the other side is gone.
    package static func send(_ bytes: some ContiguousBytes, to socket: Int32) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                let count = Foundation.send(
                    socket, bytes.baseAddress.map { $0 + sent }, bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }
    }

    /// Makes closing send a reset from now on.
    package static func resetOnClose(_ descriptor: Int32) {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_LINGER, &linger,
            socklen_t(MemoryLayout<Foundation.linger>.size))
    }

    private static func stream(_ family: Int32 = AF_INET) throws -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw TestFailure("no socket: \(errno)") }
        return descriptor
    }

    private static func unixAddress(_ path: String) -> sockaddr_un {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { place in
            precondition(path.utf8.count < place.count, "the path is too long for a socket")
            place.copyBytes(from: path.utf8)
        }
        return address
    }

    private static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }
}
