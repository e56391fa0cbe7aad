internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel
internal import NIOCore
internal import NIOHTTPTypes

/// A request's body as the engine reads it.
///
/// Answers `Expect: 100-continue` when the engine asks for bytes, after every check that needs
/// none. A refusal therefore comes before the body (RFC 9110 section 10.1.1).
struct RequestByteBody: ByteBody {
    let announcedByteCount: Int64?
    var awaitsContinue: Bool { continuation.isExpected }
    /// Whether the head announces an empty body.
    var isEmpty: Bool { announcedByteCount == 0 }
    let origin: BodyOrigin
    private let body: RequestBody
    private let source: BodySource?
    private let continuation: ContinueAnswer
    private let logMetadata: RequestLogMetadata

    /// - Throws: `BAD_REQUEST` for a length that is not a number; ``RequestError/encodedBody``.
    init(_ request: Request, context: KedgeRequestContext) throws {
        guard Self.isPlain(request) else { throw RequestError.encodedBody }
        announcedByteCount = try Self.contentLength(of: request)
        body = request.body
        source = context.connection?.bodies
        origin = BodyOrigin(
            address: context.address, progress: context.connection?.progress)
        continuation = ContinueAnswer(request, channel: context.channel)
        logMetadata = context.logMetadata
    }

    func makeReader() async throws -> any ByteReader {
        try await continuation.send()
        if let source { return ConnectionReader(source, logMetadata: logMetadata) }
        return SequenceReader(body.makeAsyncIterator(), logMetadata: logMetadata)
    }

    /// Whether the body has no content coding. Lengths, offsets and digests refer to the stored
    /// bytes, so an encoded body is refused.
    private static func isPlain(_ request: Request) -> Bool {
        let codings = (request.headers[.contentEncoding] ?? "").split(separator: ",")
        return codings.map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
            .allSatisfy { $0.isEmpty || $0 == "identity" }
    }

    private static func contentLength(of request: Request) throws -> Int64? {
        guard let text = request.headers[.contentLength] else {
            return request.headers[.transferEncoding] == nil ? 0 : nil
        }
        guard let length = WireInteger.parse(text) else {
            throw EngineError(.badRequest, "Content-Length is not a number.")
        }
        return length
    }

    /// Reads the body from a connection.
    private final class ConnectionReader: ByteReader {
        private let source: BodySource
        private let logMetadata: RequestLogMetadata

        init(_ source: BodySource, logMetadata: RequestLogMetadata) {
            self.source = source
            self.logMetadata = logMetadata
        }

        func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool {
            let before = buffer.count
            defer { logMetadata.addBody(buffer.count - before) }
            return try await translating { try await source.fill(buffer, limit: limit) }
        }
    }

    /// Reads a body that does not come from a connection.
    private final class SequenceReader: ByteReader {
        private var iterator: RequestBody.AsyncIterator
        private var rest = ByteBuffer()
        private let logMetadata: RequestLogMetadata

        init(_ iterator: RequestBody.AsyncIterator, logMetadata: RequestLogMetadata) {
            self.iterator = iterator
            self.logMetadata = logMetadata
        }

        func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool {
            var wanted = min(limit, buffer.freeCount)
            while wanted > 0 {
                if rest.readableBytes == 0 {
                    guard let next = try await read() else { return false }
                    rest = next
                    logMetadata.addBody(next.readableBytes)
                }
                let taken = rest.readableBytesView.withUnsafeBytes {
                    buffer.append($0, limit: wanted)
                }
                rest.moveReaderIndex(forwardBy: taken)
                wanted -= taken
            }
            return true
        }

        private func read() async throws -> ByteBuffer? {
            try await translating {
                // Hummingbird's iterator is not Sendable and leaves the caller's executor. Access
                // is exclusive: a reader has one caller at a time.
                nonisolated(unsafe) var iterator = self.iterator
                defer { self.iterator = iterator }
                let next = try await iterator.next()
                // A cancelled read returns nil like the end of a body; it must not count as
                // complete.
                if next == nil { try Task.checkCancellation() }
                return next
            }
        }
    }
}

/// Translates an error that interrupted a body into an engine error.
private func translating<Value>(_ read: () async throws -> Value) async throws -> Value {
    do {
        return try await read()
    } catch is SlowBodyError {
        throw EngineError(.requestTimeout)
    } catch is CancellationError {
        throw CancellationError()
    } catch {
        throw EngineError(
            .lengthMismatch, "The body ended before it was complete.",
            cause: RequestCause.text(error))
    }
}

/// Sends `100 Continue` when the client waits for it.
struct ContinueAnswer: Sendable {
    let isExpected: Bool
    private let channel: any Channel

    init(_ request: Request, channel: any Channel) {
        isExpected = request.headers[.expect].map { Self.isExpected(by: $0) } ?? false
        self.channel = channel
    }

    /// Whether the value of `Expect` asks for `100 Continue` and nothing else.
    static func isExpected(by value: String) -> Bool { value.lowercased() == "100-continue" }

    func send() async throws {
        guard isExpected else { return }
        let head = HTTPResponsePart.head(HTTPResponse(status: .continue))
        do {
            try await channel.writeAndFlush(head)
        } catch {
            throw EngineError(
                .lengthMismatch, "The connection was lost.", cause: RequestCause.text(error))
        }
    }
}
