internal import Glibc

/// A persistent connection to a server on this machine, with blocking calls. Used by one thread at
/// a time.
///
/// It does no more than the protocol demands, so that the server is measured. The tests' client
/// cannot send with `sendfile`, and this program depends on no other target.
final class BenchConnection {
    private let socket: Descriptor
    private let host: String
    /// Fields of every request.
    private let fields: [String]
    /// Received bytes that are not yet consumed: those from `start` on.
    private var received: [UInt8] = []
    private var start = 0

    /// Timeout for a silent server: no server takes this long here.
    private static let silenceLimitSeconds = 120

    /// - Throws: ``BenchFailure`` when no process listens there.
    init(port: UInt16, fields: [String] = []) throws {
        self.fields = fields
        host = "127.0.0.1:\(port)"
        socket = try BenchSocket.connect(to: port)
        var limit = timeval(tv_sec: Self.silenceLimitSeconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(socket.number, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(socket.number, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    }

    /// Sends a request and waits for its answer.
    func request(
        _ method: String, _ path: String, fields: [String] = [], body: HTTPBody = .none
    ) throws -> HTTPResponse {
        do {
            try send(method, path, fields: fields, body: body)
        } catch {
            // A server that refuses a body answers and closes; its answer says more than EPIPE.
            if let response = try? receive(), response.status >= 400 { return response }
            throw error
        }
        return try receive()
    }

    func send(_ method: String, _ path: String, fields: [String], body: HTTPBody) throws {
        try sendHead(method, path, fields: fields, bodyByteCount: body.byteCount)
        switch body {
        case .none: break
        case .text(let text): try sendBytes(Array(text.utf8), more: false)
        case .file(let file, let offset, let byteCount):
            var sent = 0
            while sent < byteCount {
                sent += try sendPart(file, at: offset + sent, atMost: byteCount - sent)
            }
        }
    }

    /// Sends the head of a request. Other calls send its body of this many bytes.
    func sendHead(
        _ method: String, _ path: String, fields: [String], bodyByteCount: Int
    ) throws {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: \(host)\r\n"
        for field in self.fields + fields { head += field + "\r\n" }
        if bodyByteCount > 0 || method != "GET" { head += "Content-Length: \(bodyByteCount)\r\n" }
        try sendBytes(Array((head + "\r\n").utf8), more: bodyByteCount > 0)
    }

    /// Sends a part of the body from a file.
    ///
    /// - Returns: Number of bytes taken; 0 when the connection does not block and takes none now.
    func sendPart(_ file: Descriptor, at offset: Int, atMost byteCount: Int) throws -> Int {
        var offset = off_t(offset)
        while true {
            let count = sendfile(socket.number, file.number, &offset, byteCount)
            if count > 0 { return count }
            if count == 0 { throw BenchFailure("the source file is shorter than it was") }
            switch errno {
            case EINTR: continue
            case EAGAIN where !isBlocking: return 0
            default: throw BenchFailure.system("sendfile")
            }
        }
    }

    /// Whether calls block; true at first.
    var isBlocking = true {
        didSet {
            let flags = fcntl(socket.number, F_GETFL)
            let wanted = isBlocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK
            precondition(fcntl(socket.number, F_SETFL, wanted) == 0, "a socket can be set")
        }
    }

    private func sendBytes(_ bytes: [UInt8], more: Bool) throws {
        let flags = Int32(MSG_NOSIGNAL) | (more ? Int32(MSG_MORE) : 0)
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(socket.number, $0.baseAddress, $0.count, flags)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw BenchFailure.system("send") }
            rest = rest.dropFirst(count)
        }
    }

    /// Waits for an answer and reads it to its end.
    func receive() throws -> HTTPResponse {
        while true {
            let end = try findHeadEnd()
            let head = try HTTPResponseHead(received[start..<end])
            start = end
            let body = try take(head.contentLength)
            // Interim answers (RFC 9110 section 15.2) precede the one that counts.
            if head.status >= 200 {
                return HTTPResponse(status: head.status, location: head.location, body: body)
            }
        }
    }

    /// Reads until the empty line, and returns the index behind it.
    private func findHeadEnd() throws -> Int {
        var looked = start
        while true {
            while looked + 4 <= received.count {
                if received[looked] == 13, received[looked + 1] == 10, received[looked + 2] == 13,
                    received[looked + 3] == 10
                {
                    return looked + 4
                }
                looked += 1
            }
            let consumed = start
            try fill()
            // Filling moves the remaining bytes to the front.
            looked -= consumed
        }
    }

    private func take(_ count: Int) throws -> [UInt8] {
        while received.count - start < count { try fill() }
        defer { start += count }
        return Array(received[start..<start + count])
    }

    /// Appends the next bytes to `received`, after dropping the consumed ones.
    private func fill() throws {
        received.removeFirst(start)
        start = 0
        let room = 256 << 10
        let part = try [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
            var result = recv(socket.number, buffer.baseAddress, room, 0)
            while result < 0, errno == EINTR {
                result = recv(socket.number, buffer.baseAddress, room, 0)
            }
            guard result != 0 else { throw BenchFailure("the server closed the connection") }
            guard result > 0 else { throw BenchFailure.system("receive") }
            count = result
        }
        received += part
    }
}
