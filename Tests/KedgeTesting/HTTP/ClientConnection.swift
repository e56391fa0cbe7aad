internal import Glibc
internal import KedgeFiles
internal import KedgeLocks

/// A connection to a server under test with calls for raw bytes, so that a test can break any rule.
///
/// Calls run one after the other on a blocking thread of the connection. Every wait ends after
/// ``LoopbackConnection/timeoutSeconds``.
package final class ClientConnection: Sendable {
    package typealias Failure = LoopbackConnection.Failure

    private let connection: Mutex<LoopbackConnection>
    private let thread = BlockingPool(threadCount: 1)

    /// - Throws: ``Failure/refused``.
    package init(port: Int) async throws {
        let socket = try await thread.run { LoopbackSocket.connect(to: UInt16(port)) }
        guard let socket else { throw Failure.refused }
        connection = Mutex(LoopbackConnection(socket: socket))
    }

    /// Connects to a Unix socket.
    ///
    /// - Throws: ``Failure/refused``.
    package init(path: String) async throws {
        let socket = try await thread.run { LoopbackSocket.connect(toPath: path) }
        guard let socket else { throw Failure.refused }
        connection = Mutex(LoopbackConnection(socket: socket))
    }

    deinit { connection.withLock { $0.close() } }

    /// Sends the bytes. When the server has closed, sends as many as it takes.
    package func send(_ bytes: [UInt8]) async throws { _ = try await perform { $0.send(bytes) } }

    package func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    package func send(_ request: HTTPRequestBytes) async throws { try await send(request.bytes) }

    /// Sends zeros without reading, like a client that reads only after its last byte. Returns the
    /// number of bytes that the server took before it closed.
    package func sendZeros(_ byteCount: Int) async throws -> Int {
        try await perform { state in
            let block = [UInt8](repeating: 0, count: 64 << 10)
            var count = 0
            while count < byteCount, state.send(block) { count += block.count }
            return count
        }
    }

    /// Reads the next answer, which may be an informational one.
    ///
    /// - Throws: ``Failure/ended`` when the server closed instead.
    package func answer(to method: String = "GET") async throws -> HTTPAnswer {
        try await perform { try $0.readAnswer(to: method) }
    }

    /// Sends a request and returns the answer.
    package func ask(_ request: HTTPRequestBytes) async throws -> HTTPAnswer {
        try await perform { state in
            state.send(request.bytes)
            return try state.readAnswer(to: request.method)
        }
    }

    /// Reads until the server has closed, and returns the bytes.
    ///
    /// - Throws: ``Failure/silent`` when it does not close.
    @discardableResult
    package func untilClosed() async throws -> [UInt8] {
        try await perform { try $0.readUntilClosed() }
    }

    /// Reads some bytes and leaves the rest unread.
    package func readSome() async throws { try await perform { _ = try $0.receive(atMost: 1024) } }

    /// Closes the sending side alone.
    package func finishSending() async throws { try await perform { $0.finishSending() } }

    /// Closes the connection, in order or with a reset.
    package func close(resetting isReset: Bool = false) async throws {
        try await perform { $0.close(resetting: isReset) }
    }

    private func perform<Result: Sendable>(
        _ work: @escaping @Sendable (LoopbackConnection) throws -> Result
    ) async throws -> Result {
        try await thread.run { [self] in try connection.withLock { try work($0) } }
    }
}
