import Glibc

/// One connection of a ``LoopbackServer``, used by its script's thread alone.
final class Connection {
    /// How long a script waits for its peer before it gives up.
    static let patienceSeconds = 20

    struct Request {
        var lines: [String]
        var body: [UInt8]

        /// `PUT /path HTTP/1.1`
        var requestLine: String { lines.first ?? "" }

        /// The values of a header field, by its lower-case name.
        func values(of name: String) -> [String] {
            lines.dropFirst().compactMap { line in
                let parts = line.split(separator: ":", maxSplits: 1)
                guard let first = parts.first, first.lowercased() == name else { return nil }
                return parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
            }
        }
    }

    private let socket: Int32
    private var received: [UInt8] = []
    private var isClosed = false

    init(socket: Int32) {
        self.socket = socket
        var patience = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
        let length = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, length)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, length)
    }

    /// Reads up to and including the blank line; `nil` when the peer is gone.
    func readHead() -> Request? {
        let blankLine = Array("\r\n\r\n".utf8)
        while true {
            let found = received.indices.first { received[$0...].starts(with: blankLine) }
            if let found {
                let lines = String(decoding: received[..<found], as: UTF8.self)
                    .split(separator: "\r\n").map(String.init)
                received.removeFirst(found + blankLine.count)
                return Request(lines: lines, body: [])
            }
            guard receive() else { return nil }
        }
    }

    /// Reads a head and the body its `Content-Length` announces.
    func readRequest() -> Request? {
        guard var request = readHead() else { return nil }
        let byteCount = request.values(of: "content-length").first.flatMap { Int($0) } ?? 0
        while received.count < byteCount {
            guard receive() else { return nil }
        }
        request.body = Array(received.prefix(byteCount))
        received.removeFirst(byteCount)
        return request
    }

    @discardableResult
    func send(_ text: String) -> Bool {
        send(Array(text.utf8))
    }

    /// Sends everything, blocking; says whether the peer was there for it.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var sentCount = 0
        while sentCount < bytes.count {
            let count = bytes.withUnsafeBytes { all in
                let rest = UnsafeRawBufferPointer(rebasing: all[sentCount...])
                return Glibc.send(socket, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sentCount += count
        }
        return true
    }

    /// Sends a complete response of status 200.
    func respond(_ body: String = "") {
        send("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    /// Whether the socket takes more within a time; if not, the peer has stopped reading.
    func canSend(withinMilliseconds timeout: Int32) -> Bool {
        var entry = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
        return poll(&entry, 1, timeout) > 0
    }

    /// Reads and drops until the peer closes; says whether it did in time.
    @discardableResult
    func waitUntilPeerCloses() -> Bool {
        while receive() { received = [] }
        return isClosed || errno == ECONNRESET
    }

    /// Makes closing send a reset in place of an orderly end.
    func resetOnClose() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    func close() {
        Glibc.close(socket)
    }

    private func receive() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 256 * 1024)
        let count = recv(socket, &chunk, chunk.count, 0)
        isClosed = count == 0
        guard count > 0 else { return false }
        received += chunk[..<count]
        return true
    }
}
