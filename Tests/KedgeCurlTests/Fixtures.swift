import HTTPTypes
import KedgeCurl
import KedgeLocks
import KedgeTransport
import Testing

extension CurlClient {
    /// Makes a client for loopback without a proxy, whose timeouts are short enough for tests.
    static func forTests(
        stallTimeout: Duration = .seconds(20),
        _ change: (inout Configuration) -> Void = { _ in }
    ) -> CurlClient {
        var configuration = Configuration()
        configuration.usesEnvironmentProxy = false
        configuration.stallTimeout = stallTimeout
        change(&configuration)
        return CurlClient(configuration: configuration)
    }
}

extension TransportRequest {
    /// Returns the request with a limit for its whole exchange.
    func within(_ timeout: Duration) -> TransportRequest {
        var request = self
        request.timeout = timeout
        return request
    }
}

/// Reads a body to its end or failure and counts the bytes that arrived.
func drain(_ body: TransportResponseBody) async -> (byteCount: Int, error: TransportError?) {
    var byteCount = 0
    do throws(TransportError) {
        while let chunk = try await body.next() { byteCount += chunk.count }
        return (byteCount, nil)
    } catch {
        return (byteCount, error)
    }
}

/// Returns curl's code of the request's error. A success records an issue and gives nil.
func failure(
    of client: CurlClient, sending request: TransportRequest,
    at location: SourceLocation = #_sourceLocation
) async -> CurlError.Code? {
    let error = await #expect(throws: TransportError.self, sourceLocation: location) {
        try await client.send(request)
    }
    return error?.curl?.code
}

/// A value that a script hands to a waiting task, once.
struct Handover<Value: Sendable>: Sendable {
    private let stream: AsyncStream<Value>
    private let continuation: AsyncStream<Value>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    func give(_ value: Value) {
        continuation.yield(value)
        continuation.finish()
    }

    func wait() async -> Value? {
        await stream.first { _ in true }
    }
}

/// A body of one repeated byte, which can fail or end early at an offset.
struct RepeatedByte: TransportBodySource {
    struct Broken: Error {}

    var byteCount: Int64
    var endsAt: Int64 = .max
    var breaksAt: Int64 = .max

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        if offset >= breaksAt { throw Broken() }
        let limit = min(byteCount, endsAt, breaksAt)
        let count = Int(min(Int64(buffer.count), limit - offset))
        UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]).initializeMemory(
            as: UInt8.self, repeating: 7)
        return count
    }
}
