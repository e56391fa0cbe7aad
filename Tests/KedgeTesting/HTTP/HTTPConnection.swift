import Glibc
import KedgeFiles
import KedgeLocks

/// One connection to a server under test, spoken to in raw bytes, so that a test can break any rule.
///
/// Calls block a thread of the connection's own, one after the other. Every wait ends by itself
/// after ``HTTPSocket/patienceSeconds``.
final class HTTPConnection: Sendable {
    enum Failure: Error, Equatable {
        /// Nobody accepts connections at the port.
        case refused
        /// Nothing came within the patience.
        case silent
        /// The server closed before it answered.
        case ended
        /// What came is no answer.
        case garbled
    }

    private let state = Mutex(HTTPSocket())
    private let thread = BlockingPool(threadCount: 1)

    /// - Throws: ``Failure/refused``.
    init(port: Int) async throws { try await perform { try $0.connect(to: UInt16(port)) } }

    deinit { state.withLock { $0.close() } }

    /// Sends everything; when the server has closed, as much as it took.
    func send(_ bytes: [UInt8]) async throws { _ = try await perform { $0.send(bytes) } }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    func send(_ request: HTTPRequestBytes) async throws { try await send(request.bytes) }

    /// Sends zeros without looking up, as clients do that read only when they have sent all; returns
    /// how many the server took before it closed.
    func sendZeros(_ byteCount: Int) async throws -> Int {
        try await perform { state in
            let block = [UInt8](repeating: 0, count: 64 << 10)
            var count = 0
            while count < byteCount, state.send(block) { count += block.count }
            return count
        }
    }

    /// The next answer, which may be an informational one.
    ///
    /// - Throws: ``Failure/ended`` when the server closed instead.
    func answer(to method: String = "GET") async throws -> HTTPAnswer {
        try await perform { try $0.answer(to: method) }
    }

    /// Sends a request and returns the answer.
    func ask(_ request: HTTPRequestBytes) async throws -> HTTPAnswer {
        try await perform { state in
            state.send(request.bytes)
            return try state.answer(to: request.method)
        }
    }

    /// Reads until the server has closed; returns what came.
    ///
    /// - Throws: ``Failure/silent`` when it does not close.
    @discardableResult
    func untilClosed() async throws -> [UInt8] {
        try await perform { state in
            while try state.receive() {}
            defer { state.received = [] }
            return state.received
        }
    }

    /// Reads the first bytes of what comes and leaves the rest where it is.
    func readSome() async throws { try await perform { _ = try $0.receive(atMost: 1024) } }

    /// Ends the sending side alone.
    func finishSending() async throws { try await perform { $0.finishSending() } }

    /// Closes: in order, or with a reset.
    func close(resetting isReset: Bool = false) async throws {
        try await perform { $0.close(resetting: isReset) }
    }

    private func perform<Result: Sendable>(
        _ work: @escaping @Sendable (inout HTTPSocket) throws -> Result
    ) async throws -> Result {
        try await thread.run { [self] in try state.withLock { try work(&$0) } }
    }
}

private struct HTTPSocket {
    static let patienceSeconds = 40

    var descriptor: Int32 = -1
    var received: [UInt8] = []

    mutating func connect(to port: UInt16) throws {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        descriptor = socket(AF_INET, type, 0)
        var patience = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
        let length = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, length)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, length)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                Glibc.connect(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw HTTPConnection.Failure.refused }
    }

    /// Says whether the server was there for all of it.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var sentCount = 0
        while sentCount < bytes.count {
            let count = bytes.withUnsafeBytes { all in
                let rest = UnsafeRawBufferPointer(rebasing: all[sentCount...])
                return Glibc.send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sentCount += count
        }
        return true
    }

    mutating func answer(to method: String) throws -> HTTPAnswer {
        var headEnd: Int?
        while headEnd == nil {
            headEnd = endOfHead()
            if headEnd == nil, try !receive() { throw HTTPConnection.Failure.ended }
        }
        let head = Array(received[..<(headEnd ?? 0)])
        received.removeFirst(head.count + 4)
        guard var answer = HTTPAnswer(head: head) else { throw HTTPConnection.Failure.garbled }
        let byteCount = answer.announcedByteCount(to: method)
        while answer.isWhole, received.count < byteCount { answer.isWhole = try receive() }
        answer.body = Array(received.prefix(byteCount))
        received.removeFirst(answer.body.count)
        return answer
    }

    private func endOfHead() -> Int? {
        let blankLine = Array("\r\n\r\n".utf8)
        return received.indices.dropLast(3).first { received[$0...].starts(with: blankLine) }
    }

    /// Receives more; false when the server has closed, in order or not.
    mutating func receive(atMost limit: Int = 256 << 10) throws -> Bool {
        var block = [UInt8](repeating: 0, count: limit)
        let count = recv(descriptor, &block, block.count, 0)
        if count < 0, errno == EAGAIN { throw HTTPConnection.Failure.silent }
        guard count > 0 else { return false }
        received += block[..<count]
        return true
    }

    func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    mutating func close(resetting isReset: Bool = false) {
        guard descriptor >= 0 else { return }
        if isReset {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(
                descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        Glibc.close(descriptor)
        descriptor = -1
    }
}
