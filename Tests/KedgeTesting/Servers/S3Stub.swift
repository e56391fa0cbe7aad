/// A strict stand-in for S3 with faults on request; `Tests/servers/s3_stub.py`.
package final class S3Stub: ObjectStoreServer {
    private struct Options: Encodable, Sendable {
        var minPartByteCount: Int
        var pageSize: Int
    }

    private struct FaultCommand: Encodable, Sendable {
        var command = "fail"
        var rules: [S3Fault]
    }

    private struct DamageCommand: Encodable, Sendable {
        var command = "damage"
        var key: String
        var offset: Int64
    }

    private let host: ServerHost
    package let address: ObjectStoreAddress

    private init(host: ServerHost, address: ObjectStoreAddress) {
        self.host = host
        self.address = address
    }

    /// Starts it.
    ///
    /// - Parameters:
    ///   - minPartByteCount: Least size of a part that is not the last.
    ///   - pageSize: Most entries of one page of a list.
    /// - Throws: ``TestFailure``.
    package static func start(
        minPartByteCount: Int = 5 << 20, pageSize: Int = 1000
    ) async throws -> S3Stub {
        let (host, address) = try await ServerHost.start(
            "stub", options: Options(minPartByteCount: minPartByteCount, pageSize: pageSize),
            about: ObjectStoreAddress.self)
        return S3Stub(host: host, address: address)
    }

    /// Makes requests fail from now on. The first of several rules for a request applies.
    ///
    /// - Parameters:
    ///   - operation: The requests that fail.
    ///   - times: Number of failing requests; nil for all.
    ///   - after: Number of requests that pass before.
    ///   - duration: Time from now; nil for no end.
    ///   - key: Only requests whose key contains this.
    ///   - action: The effect instead.
    package func fail(
        _ operation: S3Operation, times: Int? = nil, after: Int = 0, for duration: Duration? = nil,
        key: String = "", with action: S3Fault.Action
    ) async throws {
        let fault = S3Fault(
            operation: operation, times: times, after: after, duration: duration, key: key,
            action: action)
        try await host.tell(FaultCommand(rules: [fault]))
    }

    /// Removes all rules.
    package func heal() async throws { try await host.tell(PlainCommand(command: "heal")) }

    /// The stored objects and the requests so far.
    package func state() async throws -> S3StubState {
        try await host.ask(PlainCommand(command: "state"))
    }

    /// Flips a bit of an object at rest. Neither its size nor its tag changes.
    package func damage(_ key: String, at offset: Int64 = 0) async throws {
        try await host.tell(DamageCommand(key: key, offset: offset))
    }

    /// Makes it accept connections and answer nothing from now on.
    package func freeze() async throws { try await host.tell(PlainCommand(command: "freeze")) }

    /// Ends ``freeze()``.
    package func thaw() async throws { try await host.tell(PlainCommand(command: "thaw")) }

    package func stop() async { await host.stop() }
}

/// The stand-in's objects and its counts of requests.
package struct S3StubState: Decodable, Sendable {
    package struct Object: Decodable, Hashable, Sendable {
        package var bucket: String
        package var key: String
        package var byteCount: Int64
        package var tag: String
    }

    package struct Part: Decodable, Hashable, Sendable {
        package var number: Int
        package var byteCount: Int64
    }

    package struct Upload: Decodable, Hashable, Sendable {
        package var bucket: String
        package var key: String
        package var uploadID: String
        package var parts: [Part]
    }

    package var objects: [Object]
    /// Multipart uploads that are neither completed nor aborted.
    package var uploads: [Upload]
    /// Requests by operation, with those that failed.
    package var requests: [String: Int]
    /// Refusals by code, without planned faults. A correct client causes only those that it
    /// intends.
    package var errors: [String: Int]
    /// Number of faults applied, by the action's name.
    package var faults: [String: Int]
    /// Maximum number of concurrent requests.
    package var mostAtOnce: Int

    /// Number of requests of a kind.
    package func count(_ operation: S3Operation) -> Int {
        operation == .all ? requests.values.reduce(0, +) : requests[operation.rawValue] ?? 0
    }
}
