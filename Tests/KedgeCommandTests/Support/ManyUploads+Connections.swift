import Foundation

/// A connection that a test looks at now and then: sending and looking never wait, so that one test
/// can keep hundreds of them.
final class RawConnection {
    private var socket: Int32
    private let reader: MessageReader
    private(set) var answer: PassingMessage?

    /// - Throws: ``Failure`` when nobody listens.
    init(to server: Server) throws {
        guard let socket = Loopback.connect(to: server.port) else { throw Failure("no server") }
        // The rest of an answer that has begun comes at once; a test never hangs on half of one.
        var patience = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(
            socket, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        self.socket = socket
        reader = MessageReader(socket: socket)
    }

    deinit { if socket >= 0 { close(socket) } }

    /// Sends as many of the bytes as go now; returns how many, or nil when the other side is gone.
    func push(_ bytes: ArraySlice<UInt8>) -> Int? {
        let count = bytes.withUnsafeBytes { bytes in
            Foundation.send(
                socket, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        }
        if count >= 0 { return count }
        return errno == EAGAIN ? 0 : nil
    }

    /// The answer, when it is there.
    ///
    /// - Throws: ``Failure`` when the connection ended before it, or in the middle of it.
    func poll() throws -> PassingMessage? {
        if let answer { return answer }
        var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard Foundation.poll(&entry, 1, 0) == 1 else { return nil }
        guard var whole = reader.readHead(), reader.readBody(of: &whole, isAnswer: true) else {
            throw Failure("the connection ended without a whole answer")
        }
        answer = whole
        return whole
    }

    /// Ends the connection as a crash does.
    func reset() {
        Loopback.resetOnClose(socket)
        close(socket)
        socket = -1
    }
}

/// One chunk on its way over a connection of its own.
final class RawChunk {
    let upload: RawUpload
    let connection: RawConnection
    /// Bytes of the body that were handed to the connection.
    private(set) var sentByteCount = 0
    private let range: Range<Int>

    /// Sends the head of the request.
    init(_ index: Int, of upload: RawUpload, to server: Server) throws {
        self.upload = upload
        range = upload.file.range(ofChunk: index)
        connection = try RawConnection(to: server)
        let head = upload.file.head(ofChunk: index, path: upload.path).head
        guard connection.push(head[...]) == head.count else { throw Failure("no head was sent") }
    }

    /// Sends what goes now of the first bytes; returns true when that is all of them, or when the
    /// server is not there for more.
    func push(upTo byteCount: Int) -> Bool {
        let end = range.lowerBound + min(byteCount, range.count)
        while range.lowerBound + sentByteCount < end {
            let rest = upload.file.content[(range.lowerBound + sentByteCount)..<end]
            guard let count = connection.push(rest) else { return true }
            if count == 0 { return false }
            sentByteCount += count
        }
        return true
    }
}

extension [RawChunk] {
    /// Sends the first bytes of each.
    func push(upTo byteCount: Int) async throws {
        try await eventually(
            "\(byteCount) bytes of each are sent",
            is: {
                // Each gets its turn, also when one before it cannot go on.
                map { $0.push(upTo: byteCount) }.allSatisfy { $0 }
            })
    }

    /// Waits until each is answered.
    func answers() async throws -> [PassingMessage] {
        try await eventually("\(count) requests are answered") {
            let answers = try compactMap { try $0.connection.poll() }
            return answers.count == count ? answers : nil
        }
    }
}
