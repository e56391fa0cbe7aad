import HTTPTypes
import KedgeCurl
import KedgeLocks
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

/// Reads a body to its end or failure and counts the bytes that arrived.
func drain(_ body: CurlResponseBody) async -> (byteCount: Int, error: CurlError?) {
    var byteCount = 0
    do throws(CurlError) {
        var iterator = body.makeAsyncIterator()
        while let chunk = try await iterator.next(isolation: nil) { byteCount += chunk.count }
        return (byteCount, nil)
    } catch {
        return (byteCount, error)
    }
}

/// Returns the code of the request's error. A success records an issue and gives nil.
func failure(
    of client: CurlClient, sending request: CurlRequest,
    at location: SourceLocation = #_sourceLocation
) async -> CurlError.Code? {
    let error = await #expect(throws: CurlError.self, sourceLocation: location) {
        try await client.send(request)
    }
    return error?.code
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
struct RepeatedByte: CurlRequestBodySource {
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
