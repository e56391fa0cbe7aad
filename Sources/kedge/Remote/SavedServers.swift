internal import Foundation
internal import KedgeModel
internal import Yams

/// The file `servers.yaml` of the settings, as `kedge login` changes it.
struct SavedServers {
    private let directory: String
    private let path: String

    /// Limit of the wait for other commands that save a server, each for a moment.
    private static let lockTimeout = Duration.seconds(10)

    /// - Parameter directory: Directory of the settings, created with the first server.
    init(in directory: String) {
        self.directory = directory
        path = "\(directory)/servers.yaml"
    }

    /// Adds a server, or replaces the one of its name, in one step. Commands that save servers at
    /// the same time do so one after the other.
    ///
    /// - Parameter isDefault: Whether commands use it without another one. The first server is the
    ///   default in any case.
    /// - Throws: ``CommandFailure``; then the file is as it was.
    func save(_ server: NamedServer, as name: String, isDefault: Bool) async throws {
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        } catch {
            throw unwritable(error.localizedDescription)
        }
        let descriptor = try await lock()
        defer { close(descriptor) }
        var root = try members()
        guard var servers = Self.members(of: Self.value(of: "servers", in: root)) else {
            throw unreadable
        }
        Self.set(name, to: Self.node(for: server), in: &servers)
        Self.set("servers", to: Node(servers), in: &root)
        if isDefault || Self.value(of: "server", in: root) == nil {
            Self.set("server", to: Self.quoted(name), in: &root)
        }
        try replace(with: "# Written by kedge login.\n" + (try Yams.serialize(node: Node(root))))
    }

    /// Returns the members of the saved file; none without one.
    private func members() throws -> [(Node, Node)] {
        guard let file = try SettingsFile.read(path) else { return [] }
        let node: Node?
        do {
            node = try Yams.compose(yaml: file.text)
        } catch {
            // Saved servers must not be lost because of a mistake in the file.
            throw unreadable
        }
        guard let members = Self.members(of: node) else { throw unreadable }
        return members
    }

    /// Waits until no other command saves a server.
    ///
    /// - Returns: The descriptor that holds the lock until it is closed.
    private func lock() async throws -> Int32 {
        let descriptor = unsafe open("\(path).lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw unwritable(Self.systemMessage) }
        let deadline = ContinuousClock.now + Self.lockTimeout
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            // On a file system without locks, commands at the same time are not kept apart.
            if [ENOLCK, ENOSYS, EOPNOTSUPP].contains(errno) { break }
            let isHeld = errno == EWOULDBLOCK || errno == EINTR
            guard isHeld, ContinuousClock.now < deadline else {
                let reason = isHeld ? "another command is changing it" : Self.systemMessage
                close(descriptor)
                throw unwritable(reason)
            }
            do {
                try await Task.sleep(for: .milliseconds(20))
            } catch {
                close(descriptor)
                throw error
            }
        }
        return descriptor
    }

    private func replace(with text: String) throws {
        let temporary = "\(path).\(UInt32.random(in: 0 ... .max))"
        // Private from the start: it has tokens.
        let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw unwritable(Self.systemMessage) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try file.write(contentsOf: Data(text.utf8))
            try file.synchronize()
        } catch {
            unsafe unlink(temporary)
            throw unwritable(error.localizedDescription)
        }
        guard unsafe rename(temporary, path) == 0 else {
            let reason = Self.systemMessage
            unsafe unlink(temporary)
            throw unwritable(reason)
        }
    }

    // MARK: - Nodes

    /// All values are quoted: a token such as `0x10` or `null` is text.
    private static func node(for server: NamedServer) -> Node {
        let members: [(String, String?)] = [
            ("url", server.url), ("token", server.token), ("tokenFile", server.tokenFile),
            ("tokenCommand", server.tokenCommand), ("caFile", server.caFile),
        ]
        return Node(members.compactMap { name, value in value.map { (Node(name), quoted($0)) } })
    }

    private static func quoted(_ text: String) -> Node { Node(text, Tag(.str), .doubleQuoted) }

    /// Returns the members of a mapping, in order; none of nothing. Nil for another node.
    private static func members(of node: Node?) -> [(Node, Node)]? {
        guard let node else { return [] }
        return node.mapping.map { mapping in mapping.map { key, value in (key, value) } }
    }

    /// Compares the texts of names, which are the same whether they are quoted or not.
    private static func value(of name: String, in members: [(Node, Node)]) -> Node? {
        members.first { $0.0.scalar?.string == name }?.1
    }

    private static func set(
        _ name: String, to value: Node, in members: inout [(Node, Node)]
    ) {
        if let position = members.firstIndex(where: { $0.0.scalar?.string == name }) {
            members[position].1 = value
        } else {
            members.append((quoted(name), value))
        }
    }

    // MARK: - Errors

    private var unreadable: CommandFailure {
        CommandFailure(
            "kedge: \(path) has a mistake; correct it or move it away. Nothing was saved.",
            exitStatus: ExitStatus.usage)
    }

    private func unwritable(_ reason: String) -> CommandFailure {
        CommandFailure("kedge: \(path) cannot be written: \(reason).")
    }

    private static var systemMessage: String { unsafe String(cString: strerror(errno)) }
}
