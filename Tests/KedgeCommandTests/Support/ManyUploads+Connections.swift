import KedgeTesting

/// A connection that a test polls: sending and polling never wait, so that one test can keep
/// hundreds of them.
final class PolledConnection {
    private let connection: LoopbackConnection
    private(set) var answer: HTTPMessage?

    /// - Throws: `LoopbackConnection.Failure` when no server listens.
    init(to server: Server) throws { connection = try LoopbackConnection(port: server.port) }

    deinit { connection.close() }

    /// Sends as many bytes as possible without waiting; returns their number, or nil when the other
    /// side is gone.
    func push(_ bytes: ArraySlice<UInt8>) -> Int? { connection.sendNow(bytes) }

    /// Returns the answer if it has arrived.
    ///
    /// - Throws: `TestFailure` when the connection ended before or during the answer.
    func poll() throws -> HTTPMessage? {
        if let answer { return answer }
        guard connection.hasInput(withinMilliseconds: 0) else { return nil }
        // The rest of a begun answer comes at once; a timeout keeps a test from hanging on half of
        // one.
        guard var whole = connection.readHead(), connection.readBody(of: &whole, isAnswer: true)
        else {
            throw TestFailure("the connection ended without a whole answer")
        }
        answer = whole
        return whole
    }

    /// Ends the connection as a crash does.
    func reset() { connection.close(resetting: true) }
}

/// The upload of one chunk over its own connection.
final class RawChunk {
    let upload: RawUpload
    let connection: PolledConnection
    /// Bytes of the body that were handed to the connection.
    private(set) var sentByteCount = 0
    private let range: Range<Int>

    /// Sends the head of the request.
    init(_ index: Int, of upload: RawUpload, to server: Server) throws {
        self.upload = upload
        range = upload.file.range(ofChunk: index)
        connection = try PolledConnection(to: server)
        let head = upload.file.head(ofChunk: index, path: upload.path).head
        guard connection.push(head[...]) == head.count else {
            throw TestFailure("no head was sent")
        }
    }

    /// Sends the first bytes as far as possible without waiting; returns true when all are sent, or
    /// when the server accepts no more.
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
    /// Sends the first bytes of each chunk.
    func push(upTo byteCount: Int) async throws {
        try await eventually(
            "\(byteCount) bytes of each are sent",
            is: {
                // Each chunk gets its turn, even if one before it cannot continue.
                map { $0.push(upTo: byteCount) }.allSatisfy { $0 }
            })
    }

    /// Waits until each request is answered.
    func answers() async throws -> [HTTPMessage] {
        try await eventually("\(count) requests are answered") {
            let answers = try compactMap { try $0.connection.poll() }
            return answers.count == count ? answers : nil
        }
    }
}
