internal import KedgeLocks
internal import SystemPackage

/// The open file of the audit log, or standard error. Its calls block.
final class AuditFile: Sendable {
    private struct State {
        var descriptor: FileDescriptor
        /// Whether the last line may have been written in part.
        var isTorn = false
        var isClosed = false
    }

    /// Nil for standard error.
    private let path: FilePath?
    private let state: Mutex<State>

    /// Opens the file for appending; a new one can be read by its owner only.
    ///
    /// - Parameter path: Nil for standard error.
    init(_ path: String?) throws {
        let path = path.map { FilePath($0) }
        self.path = path
        state = Mutex(State(descriptor: try path.map(Self.open) ?? .standardError))
    }

    /// Appends a line by one call, so that lines of several processes do not mix.
    func append(_ line: [UInt8]) throws {
        try state.withLock { state in
            // The rest of a line that a full disk has cut must not spoil this one.
            let bytes = state.isTorn ? [UInt8(ascii: "\n")] + line : line
            state.isTorn = true
            try state.descriptor.writeAll(bytes)
            state.isTorn = false
        }
    }

    /// Opens the file at the path again, after the old one got another name. The old one stays in
    /// use if that fails.
    func reopen() throws {
        guard let path else { return }
        let new = try Self.open(path)
        let unused = state.withLock { state in
            // Its number may belong to another file by now.
            guard !state.isClosed else { return new }
            defer { state = State(descriptor: new) }
            return state.descriptor
        }
        try unused.close()
    }

    /// Closes the file. No line may be appended afterwards.
    func close() throws {
        guard path != nil else { return }
        try state.withLock { state in
            state.isClosed = true
            try state.descriptor.close()
        }
    }

    private static func open(_ path: FilePath) throws -> FileDescriptor {
        // Without waiting: a pipe that has no reader is refused instead.
        try FileDescriptor.open(
            path, .writeOnly, options: [.append, .create, .closeOnExec, .nonBlocking],
            permissions: .ownerReadWrite)
    }
}
