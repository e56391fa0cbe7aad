internal import KedgeCurl
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel

/// Reads one object. Reads that follow one another share a request, whose answer waits in the connection
/// and not in memory.
actor S3BlobReader: BlobReader {
    /// What the first request asks for at least: a small read elsewhere must not cost a connection.
    private static let firstWindow: Int64 = 1 << 20
    private static let longestWindow: Int64 = 256 << 20
    /// How often one read is begun again after its connection was lost.
    private static let maxTryCount = 5

    /// An answer that is being read.
    private struct Stream {
        var body: CurlResponseBody.AsyncIterator
        /// Offset of what comes next, counted without `rest`.
        var offset: Int64
        var end: Int64
        /// Received, and not handed out yet.
        var rest: ArraySlice<UInt8> = []
    }

    nonisolated let byteCount: Int64
    private let object: String
    private let client: S3Client
    /// Names the state of the object that is read, so that bytes of two never mix.
    private var tag: String?
    private var stream: Stream?
    private var nextWindow = firstWindow
    private var isClosed = false

    init(_ object: String, byteCount: Int64, tag: String?, client: S3Client) {
        self.object = object
        self.byteCount = byteCount
        self.tag = tag
        self.client = client
    }

    func read(into buffer: IOBuffer, at offset: Int64, byteCount wanted: Int64) async throws {
        let end = offset + min(wanted, Int64(buffer.freeCount))
        guard offset >= 0, end <= byteCount else { throw ByteStoreError.notFound }
        var position = offset
        var tryCount = 0
        while position < end {
            guard !isClosed else { throw ByteStoreError.failed("the blob is closed") }
            do {
                let before = position
                position += Int64(try await fill(buffer, from: position, to: end))
                if position > before { tryCount = 0 }
            } catch let failure as S3Failure {
                stream = nil
                tryCount += 1
                guard failure.isTransient, tryCount < Self.maxTryCount else {
                    throw ByteStoreError(failure)
                }
            }
        }
    }

    func copySource() async -> CopySource? {
        tag.map { CopySource(name: object, tag: $0, byteCount: byteCount) }
    }

    func close() async {
        isClosed = true
        // Dropping it ends the request.
        stream = nil
    }

    /// Hands out bytes that are there, or waits for some; returns how many.
    private func fill(_ buffer: IOBuffer, from start: Int64, to end: Int64) async throws -> Int {
        var current = try await stream(at: start, for: end - start)
        stream = nil
        if current.rest.isEmpty {
            guard let bytes = try await Self.next(&current) else {
                throw S3Failure(
                    code: "closedEarly", detail: "GetObject: fewer bytes than announced",
                    isTransient: true)
            }
            current.rest = bytes[...]
        }
        let limit = min(current.rest.count, Int(end - start))
        let taken = current.rest.withUnsafeBytes { buffer.append($0, limit: limit) }
        current.rest = current.rest.dropFirst(taken)
        current.offset += Int64(taken)
        let isOver = current.offset == current.end
        // A whole answer frees its connection for the next request.
        if isOver { _ = try await Self.next(&current) }
        if !isClosed, !isOver { stream = current }
        return taken
    }

    private static func next(_ stream: inout Stream) async throws -> [UInt8]? {
        do throws(CurlError) {
            return try await stream.body.next(isolation: #isolation)
        } catch {
            throw S3Failure(error, "GetObject")
        }
    }

    /// The stream that stands at the offset; another one is opened when there is none.
    private func stream(at offset: Int64, for wanted: Int64) async throws -> Stream {
        if let stream, stream.offset == offset { return stream }
        // Reads that go on get longer answers; one elsewhere begins small.
        let follows = stream == nil
        stream = nil
        nextWindow = follows ? nextWindow : Self.firstWindow
        let window = max(nextWindow, wanted)
        nextWindow = min(nextWindow * 4, Self.longestWindow)
        let range = ByteRange(start: offset, end: offset + min(window, byteCount - offset))
        let found = try await client.getObject(object, range, tag: tag)
        tag = tag ?? found.tag
        return Stream(
            body: found.body.makeAsyncIterator(), offset: offset, end: found.range.end)
    }
}
