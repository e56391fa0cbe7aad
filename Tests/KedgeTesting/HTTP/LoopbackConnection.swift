internal import Glibc

/// One end of a connection on 127.0.0.1 with blocking calls for raw bytes, so that a test can break
/// any rule. Used by one thread at a time. Every wait ends after the timeout.
package final class LoopbackConnection {
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

    /// Used only while the connection is open: later its number may be another socket's.
    private let socket: Int32
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
        guard let socket = LoopbackSocket.connect(to: port) else { throw Failure.refused }
        self.init(socket: socket)
    }

    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Sends the bytes; false when the peer has closed.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool { send(bytes[...]) }

    /// Sends the bytes; false when the peer has closed.
    @discardableResult
    package func send(_ bytes: ArraySlice<UInt8>) -> Bool {
        isOpen && LoopbackSocket.send(bytes, to: socket)
    }

    /// Sends as many bytes as possible without waiting.
    ///
    /// - Returns: Their number; nil when the peer is gone.
    package func sendNow(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard isOpen else { return nil }
        let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
        let count = bytes.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, flags) }
        if count >= 0 { return count }
        return errno == EAGAIN ? 0 : nil
    }

    /// Sends a complete response of status 200.
    package func respond(_ body: String = "") {
        send("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    /// Reads a message's head up to and with the blank line; nil when the peer is gone.
    package func readHead() -> HTTPMessage? {
        (try? nextHead()).map { HTTPMessage(head: $0) }
    }

    /// Reads a complete request; nil when the peer is gone before its end.
    package func readRequest() -> HTTPMessage? {
        guard var request = readHead(), readBody(of: &request, isAnswer: false) else { return nil }
        return request
    }

    /// Reads the rest of a message whose head was read.
    ///
    /// - Returns: False when the connection ended before the body did.
    package func readBody(of message: inout HTTPMessage, isAnswer: Bool) -> Bool {
        if message["Transfer-Encoding"]?.lowercased() == "chunked" {
            return readChunks(into: &message.body)
        }
        if let count = message["Content-Length"].flatMap({ Int($0) }) {
            guard let body = takeAll(count) else { return false }
            message.body = body
        } else if isAnswer {
            // An error ends the connection before the body did.
            guard let body = try? readUntilClosed() else { return false }
            message.body = body
        }
        return true
    }

    private func readChunks(into body: inout [UInt8]) -> Bool {
        while true {
            guard let line = takeLine(), let count = Int(line, radix: 16),
                let bytes = takeAll(count), takeLine() != nil
            else { return false }
            if count == 0 { return true }
            body += bytes
        }
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
        guard isOpen else { return false }
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
        isReady(Int16(POLLOUT), withinMilliseconds: timeout)
    }

    /// Whether bytes or the peer's end arrive within a time.
    package func hasInput(withinMilliseconds timeout: Int32) -> Bool {
        isReady(Int16(POLLIN), withinMilliseconds: timeout)
    }

    private func isReady(_ events: Int16, withinMilliseconds timeout: Int32) -> Bool {
        guard isOpen else { return false }
        var entry = pollfd(fd: socket, events: events, revents: 0)
        return poll(&entry, 1, timeout) > 0
    }

    /// Closes the sending side alone.
    package func finishSending() {
        if isOpen { shutdown(socket, Int32(SHUT_WR)) }
    }

    /// Makes closing send a reset in place of an orderly end.
    package func resetOnClose() {
        if isOpen { LoopbackSocket.resetOnClose(socket) }
    }

    /// Closes the connection, in order or with a reset.
    package func close(resetting isReset: Bool = false) {
        guard isOpen else { return }
        if isReset { resetOnClose() }
        isOpen = false
        Glibc.close(socket)
    }

    /// Reads the next head, without its blank line.
    private func nextHead() throws -> [UInt8] {
        var searched = 0
        let blankLine = Array("\r\n\r\n".utf8)
        while true {
            while searched + 4 <= received.count {
                if received[searched] == blankLine[0],
                    received[searched..<searched + 4].elementsEqual(blankLine)
                {
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

    /// Reads the next bytes; nil when the peer closes or falls silent first.
    private func takeAll(_ byteCount: Int) -> [UInt8]? {
        guard let taken = try? take(byteCount), taken.isWhole else { return nil }
        return taken.bytes
    }

    /// Reads the next line, and returns its beginning up to a space or its end.
    private func takeLine() -> String? {
        while true {
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                let word = received[..<end].prefix { $0 > UInt8(ascii: " ") }
                received.removeFirst(end + 1)
                return String(decoding: word, as: UTF8.self)
            }
            // An error counts as the end of the connection.
            guard (try? receive()) == true else { return nil }
        }
    }
}
