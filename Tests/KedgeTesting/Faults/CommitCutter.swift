import Dispatch
import Glibc
import KedgeLocks

@testable import KedgePostgres

/// Stands between a store and its server, and cuts a connection around a COMMIT when a test says
/// so.
final class CuttingProxy: Sendable {
    enum Cut: Sendable {
        /// The server commits, and its answer is lost.
        case answer
        /// The server never sees the COMMIT.
        case question
    }

    private let listener: Int32
    private let upstreamPort: UInt16
    private let cut = Mutex<(kind: Cut, then: @Sendable () -> Void)?>(nil)
    let port: UInt16

    init(upstreamPort: UInt16) throws {
        self.upstreamPort = upstreamPort
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.address(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, size) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, pointer, &size) == 0
            }
        }
        guard isListening else { throw ProxyError(number: errno) }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        start { [self] in acceptAll() }
    }

    struct ProxyError: Error { let number: Int32 }

    deinit { close(listener) }

    /// Takes no more connections. Those that it carries end when either side does.
    func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    /// Cuts the next connection that commits.
    ///
    /// - Parameter then: Runs after the cut, before the client hears of it.
    func cutNextCommit(_ kind: Cut, then: @escaping @Sendable () -> Void = {}) {
        cut.withLock { $0 = (kind, then) }
    }

    private func acceptAll() {
        while true {
            let client = accept(listener, nil, nil)
            guard client >= 0 else { break }
            let server = connectUpstream()
            guard server >= 0 else {
                close(client)
                continue
            }
            let connection = CarriedConnection(client: client, server: server)
            start { [self] in carryQuestions(of: connection) }
            start { Self.carryAnswers(of: connection) }
        }
    }

    private func carryQuestions(of connection: CarriedConnection) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(connection.client, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            // A simple query: its letter, four bytes of length, the text.
            let isCommit =
                buffer[0] == UInt8(ascii: "Q") && buffer[5..<11].elementsEqual("COMMIT".utf8)
            let order = isCommit ? takeOrder() : nil
            if order != nil { connection.mute() }
            if order?.kind != .question {
                send(connection.server, buffer, count, Int32(MSG_NOSIGNAL))
            }
            if let order {
                if order.kind == .answer { connection.awaitAnswer() }
                order.then()
                break
            }
        }
        connection.cut()
    }

    private static func carryAnswers(of connection: CarriedConnection) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(connection.server, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            if connection.swallowsAnswer() { continue }
            send(connection.client, buffer, count, Int32(MSG_NOSIGNAL))
        }
        connection.cut()
    }

    private func takeOrder() -> (kind: Cut, then: @Sendable () -> Void)? {
        cut.withLock { order in
            defer { order = nil }
            return order
        }
    }

    private func connectUpstream() -> Int32 {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.address(upstreamPort)
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else {
            close(server)
            return -1
        }
        return server
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return address
    }

    private func start(_ work: @escaping @Sendable () -> Void) {
        precondition(DetachedThread.start(work), "the system has a thread")
    }
}

/// What the two directions of a connection share.
private final class CarriedConnection: Sendable {
    let client: Int32
    let server: Int32
    private let isMute = Mutex(false)
    private let answer = DispatchSemaphore(value: 0)

    init(client: Int32, server: Int32) {
        self.client = client
        self.server = server
    }

    /// Only once both directions have ended: the number of a closed socket soon is somebody else's,
    /// whom ``cut()`` would cut off.
    deinit {
        close(client)
        close(server)
    }

    /// Ends both sides.
    func cut() {
        shutdown(client, Int32(SHUT_RDWR))
        shutdown(server, Int32(SHUT_RDWR))
    }

    /// From now on answers do not arrive.
    func mute() { isMute.withLock { $0 = true } }

    /// True when an answer that came must not arrive.
    func swallowsAnswer() -> Bool {
        guard isMute.withLock({ $0 }) else { return false }
        answer.signal()
        return true
    }

    /// Waits until an answer was swallowed.
    func awaitAnswer() { answer.wait() }
}
