import HTTPTypes
import KedgeLocks
import Testing

@testable import KedgeCurl

extension CurlClient {
    /// A client for loopback: no proxy, and limits short enough for tests that run into them.
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

/// Reads a body to its end or failure, keeping what arrived either way.
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

/// The code of the error that a request ends with; a success is an issue and `nil`.
func failure(
    of client: CurlClient, sending request: CurlRequest,
    at location: SourceLocation = #_sourceLocation
) async -> CurlError.Code? {
    let error = await #expect(throws: CurlError.self, sourceLocation: location) {
        try await client.send(request)
    }
    return error?.code
}

/// A value that a script on another thread changes.
final class Shared<Value: Sendable>: Sendable {
    private let storage: Mutex<Value>

    init(_ value: Value) {
        storage = Mutex(value)
    }

    var value: Value { storage.withLock { $0 } }

    func update<Result: Sendable>(_ change: @Sendable (inout Value) -> Result) -> Result {
        storage.withLock { change(&$0) }
    }
}

/// A gate that tasks wait at until a script opens it, once, with a value.
struct Gate<Value: Sendable>: Sendable {
    private let stream: AsyncStream<Value>
    private let continuation: AsyncStream<Value>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    func open(_ value: Value) {
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
