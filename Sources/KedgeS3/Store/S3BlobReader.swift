internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel
internal import KedgeTransport

/// Reads one object. Consecutive reads share a request, whose answer waits in the connection
/// instead of memory.
actor S3BlobReader: BlobReader {
    /// Smallest range of the first request, so that a small read elsewhere does not cost a
    /// connection.
    private static let firstWindow: Int64 = 1 << 20
    private static let longestWindow: Int64 = 256 << 20
    /// Largest number of consecutive attempts without progress.
    private static let maxTryCount = 5

    /// A response that is being read.
    private struct Stream {
        let body: TransportResponseBody
        /// Offset of the next byte to return, the first of `rest`.
        var offset: Int64
        var end: Int64
        /// Received, but not yet returned.
        var rest: ArraySlice<UInt8> = []
    }

    nonisolated let byteCount: Int64
    private let object: String
    private let client: S3Client
    /// Identifies the state of the object, so that bytes of two states never mix.
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
        // Dropping the stream ends the request.
        stream = nil
    }

    /// Returns received bytes, or waits for some. Returns their number.
    private func fill(_ buffer: IOBuffer, from start: Int64, to end: Int64) async throws -> Int {
        var current = try await stream(at: start, for: end - start)
        stream = nil
        if current.rest.isEmpty {
            guard let bytes = try await Self.next(of: current) else {
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
        // A complete answer frees its connection for the next request.
        if isOver { _ = try await Self.next(of: current) }
        if !isClosed, !isOver { stream = current }
        return taken
    }

    private static func next(of stream: Stream) async throws -> [UInt8]? {
        do throws(TransportError) {
            return try await stream.body.next()
        } catch {
            throw S3Failure(error, "GetObject")
        }
    }

    /// Returns the stream at the offset, or opens one.
    private func stream(at offset: Int64, for wanted: Int64) async throws -> Stream {
        if let stream, stream.offset == offset { return stream }
        // Consecutive reads get longer ranges; a read elsewhere starts small.
        let follows = stream == nil
        stream = nil
        nextWindow = follows ? nextWindow : Self.firstWindow
        let window = max(nextWindow, wanted)
        nextWindow = min(nextWindow * 4, Self.longestWindow)
        let range = ByteRange(start: offset, end: offset + min(window, byteCount - offset))
        let found = try await client.getObject(object, range, tag: tag)
        tag = tag ?? found.tag
        return Stream(body: found.body, offset: offset, end: found.range.end)
    }
}
