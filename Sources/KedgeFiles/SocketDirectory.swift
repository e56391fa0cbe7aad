internal import Glibc

/// An open directory with Unix sockets.
///
/// The address of a socket has at most 107 bytes (unix(7)), and a path may have 4,095. Through the
/// descriptor of its directory, a socket has a short path.
package final class SocketDirectory: Sendable {
    /// Longest path that is used as it is; less than the limit, because SwiftNIO has its own.
    private static let maxPathByteCount = 100

    private let path: String
    private let descriptor: Int32

    /// Opens an existing directory.
    ///
    /// - Throws: ``FileError``.
    package init(_ path: String) throws(FileError) {
        self.path = path
        descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError(operation: "open", path: path, number: errno) }
    }

    /// Opens a directory below, and makes it if there is none. Only this user may use it.
    private init(private name: String, below parent: SocketDirectory) throws(FileError) {
        path = "\(parent.path)/\(name)"
        if mkdirat(parent.descriptor, name, 0o700) != 0, errno != EEXIST {
            throw FileError(operation: "mkdir", path: path, number: errno)
        }
        let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        descriptor = openat(parent.descriptor, name, flags)
        guard descriptor >= 0 else { throw FileError(operation: "open", path: path, number: errno) }
        // It may be left over, with other permissions.
        guard fchmod(descriptor, 0o700) == 0 else {
            throw FileError(operation: "chmod", path: path, number: errno)
        }
    }

    deinit { close(descriptor) }

    /// Returns the path by which to bind or connect a socket. It is valid as long as this object.
    package func path(of name: String) -> String {
        let whole = "\(path)/\(name)"
        return whole.utf8.count <= Self.maxPathByteCount
            ? whole : "/proc/self/fd/\(descriptor)/\(name)"
    }

    /// Whether there is a socket of this name.
    package func hasSocket(_ name: String) -> Bool { kind(of: name) == mode_t(S_IFSOCK) }

    /// Whether a process accepts connections at the socket, and this user may connect.
    package func isListening(_ name: String) -> Bool {
        guard hasSocket(name) else { return false }
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let peer = socket(AF_UNIX, type, 0)
        guard peer >= 0 else { return false }
        defer { close(peer) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path(of: name).utf8) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                connect(peer, generic, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }

    /// Makes a directory that only this user may use, to bind a socket in.
    package func makePrivate(_ name: String) throws(FileError) -> SocketDirectory {
        try SocketDirectory(private: name, below: self)
    }

    /// Moves a socket here from a private directory, with mode 0600, and removes that directory.
    /// Replaces a socket of a process that has ended.
    ///
    /// No other user can connect at any time. Binding here at once would give the socket the mode
    /// of umask(2), which counts for all threads.
    ///
    /// - Throws: ``FileError`` also if there is something else than a socket under the new name.
    package func adopt(
        _ name: String, from other: SocketDirectory, named otherName: String, as newName: String
    ) throws(FileError) {
        if let kind = kind(of: newName), kind != mode_t(S_IFSOCK) {
            throw FileError(operation: "bind", path: "\(path)/\(newName)", number: EEXIST)
        }
        guard fchmodat(other.descriptor, name, 0o600, 0) == 0,
            renameat(other.descriptor, name, descriptor, newName) == 0
        else { throw FileError(operation: "rename", path: "\(path)/\(newName)", number: errno) }
        // A directory that stays is used again next time.
        unlinkat(descriptor, otherName, AT_REMOVEDIR)
    }

    /// Removes a socket, if there is one.
    package func remove(_ name: String) {
        guard hasSocket(name) else { return }
        // A socket that stays is replaced at the next start.
        unlinkat(descriptor, name, 0)
    }

    /// The type of a file, without following a link; nil if there is none.
    private func kind(of name: String) -> mode_t? {
        var status = stat()
        guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        return status.st_mode & mode_t(S_IFMT)
    }
}
