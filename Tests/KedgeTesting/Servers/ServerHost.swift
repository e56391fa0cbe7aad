internal import Foundation
internal import KedgeLocks

/// A server in its own process, which ends with this process, also after a kill.
///
/// `Tests/servers/host.py` runs the server and takes commands as lines of JSON. It ends when its
/// standard input does, a socket whose other end this process alone has.
final class ServerHost: Sendable {
    /// The options of a server that has none.
    struct NoOptions: Encodable, Sendable {}

    private struct Reply<Answer: Decodable>: Decodable {
        var answer: Answer?
        var error: String?
    }

    private let id: pid_t
    /// Its standard input and output.
    private let socket: Int32
    private let received = Mutex<[UInt8]>([])
    /// Runs commands one after the other, which wait here for their answers and block no other
    /// thread.
    private let queue = DispatchQueue(label: "server for tests")

    private init(id: pid_t, socket: Int32) {
        self.id = id
        self.socket = socket
    }

    deinit {
        close(socket)
        // The process takes a moment to end, so another thread waits for it.
        DispatchQueue.global().async { [id] in
            var status: Int32 = 0
            while waitpid(id, &status, 0) < 0, errno == EINTR {}
        }
    }

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - kind: The kind of server in `host.py`.
    ///   - options: Its options.
    /// - Returns: The host, and the server's description of itself once it serves.
    /// - Throws: ``TestFailure`` when it does not start.
    static func start<About: Decodable & Sendable>(
        _ kind: String, options: some Encodable & Sendable = NoOptions(),
        about: About.Type = About.self
    ) async throws -> (host: ServerHost, about: About) {
        let options = String(decoding: try JSONEncoder().encode(options), as: UTF8.self)
        let host = try spawn([kind, options])
        let answer: About = try await host.perform { try host.readReply() }
        return (host, answer)
    }

    /// Sends a command and waits for its answer.
    ///
    /// - Throws: ``TestFailure`` with the server's error.
    func ask<Answer: Decodable & Sendable>(
        _ command: some Encodable & Sendable, answer: Answer.Type = Answer.self
    ) async throws -> Answer {
        let line = try JSONEncoder().encode(command) + Data("\n".utf8)
        return try await perform {
            try self.write(line)
            return try self.readReply()
        }
    }

    /// Sends a command whose answer is empty.
    func tell(_ command: some Encodable & Sendable) async throws {
        let _: String? = try await ask(command)
    }

    /// Stops the server, and waits until its process and files are gone.
    func stop() async {
        await withCheckedContinuation { continuation in
            queue.async {
                shutdown(self.socket, Int32(SHUT_WR))
                // Its output ends with it.
                while (try? self.readLine()) != nil {}
                continuation.resume()
            }
        }
    }

    private func perform<Result: Sendable>(
        _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Swift.Result { try body() }) }
        }
    }

    private func write(_ line: Data) throws {
        try line.withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                // A server that ended is an error for its caller and must not end the tests.
                let count = send(
                    socket, bytes.baseAddress.map { $0 + sent }, bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw TestFailure("the server is gone") }
                sent += count
            }
        }
    }

    private func readReply<Answer: Decodable>() throws -> Answer {
        let reply = try JSONDecoder().decode(Reply<Answer>.self, from: try readLine())
        if let error = reply.error { throw TestFailure(error) }
        if let answer = reply.answer { return answer }
        // A command without an answer returns null, which decodes as a nil optional.
        return try JSONDecoder().decode(Answer.self, from: Data("null".utf8))
    }

    /// Reads the next line. The queue allows one caller at a time.
    private func readLine() throws -> Data {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let line: Data? = received.withLock { received in
                guard let end = received.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
                defer { received.removeSubrange(...end) }
                return Data(received[..<end])
            }
            if let line { return line }
            let count = recv(socket, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw TestFailure("the server's socket: \(errno)") }
            guard count > 0 else { throw TestFailure("the server ended; its complaint is above") }
            let bytes = buffer[..<count]
            received.withLock { $0 += bytes }
        }
    }
}

extension ServerHost {
    private static func spawn(_ arguments: [String]) throws -> ServerHost {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let program = tests.appendingPathComponent("servers/host.py").path
        var ends: [Int32] = [0, 0]
        // Other processes do not inherit the socket.
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            throw TestFailure("no socket: \(errno)")
        }
        let (ours, theirs) = (ends[0], ends[1])
        defer { close(theirs) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, theirs, 0)
        posix_spawn_file_actions_adddup2(&actions, theirs, 1)
        var id: pid_t = 0
        let words = (["python3", program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        guard posix_spawnp(&id, "python3", &actions, nil, words, environ) == 0 else {
            close(ours)
            throw TestFailure("python3 cannot be started; `make test-deps` brings it")
        }
        return ServerHost(id: id, socket: ours)
    }
}
