internal import Glibc

/// One end of a connection on 127.0.0.1 with blocking calls for raw bytes, so that a test can break
/// any rule. Used by one thread at a time. Every wait ends after the timeout.
package final class RawConnection {
    package enum Failure: Error, Equatable {
        /// No process accepts connections at the port.
        case refused
        /// Nothing came within the timeout.
        case silent
        /// The peer closed before it answered.
        case ended
        /// The bytes that arrived are no answer.
        case garbled
        /// Reading failed for another reason.
        case broken(errno: Int32)
    }

    /// Maximum length of a wait.
    package static let timeoutSeconds = 40

    package let socket: Int32
    private var received: [UInt8] = []
    private var isOpen = true

    /// - Parameter socket: A connection; ``close(resetting:)`` closes it.
    package init(socket: Int32) {
        self.socket = socket
        var timeout = timeval(tv_sec: Self.timeoutSeconds, tv_usec: 0)
        let length = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, length)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, length)
    }

    /// - Throws: ``Failure/refused``.
    package convenience init(port: UInt16) throws {
        guard let socket = Loopback.connect(to: port) else { throw Failure.refused }
        self.init(socket: socket)
    }

    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Sends the bytes; false when the peer has closed.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool { Loopback.send(bytes, to: socket) }

    /// Sends a complete response of status 200.
    package func respond(_ body: String = "") {
        send("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    /// Reads a request's head up to and with the blank line; nil when the peer is gone.
    package func readHead() -> HTTPRequestHead? {
        (try? nextHead()).map { HTTPRequestHead(head: $0) }
    }

    /// Reads a request: its head, and the body that its `Content-Length` announces.
    package func readRequest() -> HTTPRequestHead? {
        guard var request = readHead() else { return nil }
        let byteCount = request.values(of: "content-length").first.flatMap { Int($0) } ?? 0
        let (body, isWhole) = (try? take(byteCount)) ?? ([], false)
        request.body = body
        return isWhole ? request : nil
    }

    /// Reads the next answer, which may be an informational one.
    ///
    /// - Throws: ``Failure``.
    package func readAnswer(to method: String) throws -> HTTPAnswer {
        guard var answer = HTTPAnswer(head: try nextHead()) else { throw Failure.garbled }
        (answer.body, answer.isWhole) = try take(answer.announcedByteCount(to: method))
        return answer
    }

    /// Receives more; false when the peer has closed, in order or not.
    ///
    /// - Throws: ``Failure/silent``, ``Failure/broken(errno:)``.
    @discardableResult
    package func receive(atMost limit: Int = 256 << 10) throws -> Bool {
        var block = [UInt8](repeating: 0, count: limit)
        let count = recv(socket, &block, block.count, 0)
        let code = errno
        if count < 0, code == EAGAIN { throw Failure.silent }
        if count < 0, code != ECONNRESET { throw Failure.broken(errno: code) }
        guard count > 0 else { return false }
        received += block[..<count]
        return true
    }

    /// Receives until the peer has closed, and returns the bytes.
    ///
    /// - Throws: ``Failure/silent`` when it does not close.
    package func readUntilClosed() throws -> [UInt8] {
        while try receive() {}
        defer { received = [] }
        return received
    }

    /// Reads and discards bytes until the peer closes. Returns whether it did in time.
    @discardableResult
    package func waitUntilPeerCloses() -> Bool {
        do {
            while try receive() { received = [] }
            return true
        } catch {
            return false
        }
    }

    /// Whether the socket takes more bytes within a time. If not, the peer has stopped reading.
    package func canSend(withinMilliseconds timeout: Int32) -> Bool {
        var entry = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
        return poll(&entry, 1, timeout) > 0
    }

    /// Closes the sending side alone.
    package func finishSending() { shutdown(socket, Int32(SHUT_WR)) }

    /// Makes closing send a reset in place of an orderly end.
    package func resetOnClose() { Loopback.resetOnClose(socket) }

    /// Closes the connection, in order or with a reset.
    package func close(resetting isReset: Bool = false) {
        guard isOpen else { return }
        isOpen = false
        if isReset { resetOnClose() }
        Glibc.close(socket)
    }

    /// Reads the next head, without its blank line.
    private func nextHead() throws -> [UInt8] {
        var searched = 0
        let blankLine = Array("\r\n\r\n".utf8)
        while true {
            while searched + 4 <= received.count {
                if received[searched..<searched + 4].elementsEqual(blankLine) {
                    let head = Array(received[..<searched])
                    received.removeFirst(searched + 4)
                    return head
                }
                searched += 1
            }
            guard try receive() else { throw Failure.ended }
        }
    }

    /// Reads the next bytes; fewer, and false, when the peer closes first.
    private func take(_ byteCount: Int) throws -> (bytes: [UInt8], isWhole: Bool) {
        var isWhole = true
        while isWhole, received.count < byteCount { isWhole = try receive() }
        let bytes = Array(received.prefix(byteCount))
        received.removeFirst(bytes.count)
        return (bytes, isWhole)
    }
}

/// A request's head as it arrived.
package struct HTTPRequestHead: Sendable {
    package var lines: [String]
    package var body: [UInt8] = []

    init(head: [UInt8]) {
        lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n").map(String.init)
    }

    /// `PUT /path HTTP/1.1`
    package var requestLine: String { lines.first ?? "" }

    /// The values of a header field, by its lower-case name.
    package func values(of name: String) -> [String] {
        lines.dropFirst().compactMap { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            guard let first = parts.first, first.lowercased() == name else { return nil }
            return parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
    }
}
