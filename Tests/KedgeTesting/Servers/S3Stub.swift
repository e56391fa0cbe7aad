/// A strict stand-in for S3 that can be told to fail; `Tests/servers/s3_stub.py`.
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
    /// - Throws: ``ServersError``.
    package static func start(
        minPartByteCount: Int = 5 << 20, pageSize: Int = 1000
    ) async throws -> S3Stub {
        let (host, address) = try await ServerHost.start(
            "stub", options: Options(minPartByteCount: minPartByteCount, pageSize: pageSize),
            about: ObjectStoreAddress.self)
        return S3Stub(host: host, address: address)
    }

    /// Makes requests fail from now on. Of several rules that mean a request, the first one counts.
    ///
    /// - Parameters:
    ///   - operation: Which requests.
    ///   - times: How many of them; nil for all.
    ///   - after: How many pass before.
    ///   - duration: For how long from now; nil without end.
    ///   - key: Only requests whose key contains this.
    ///   - action: What happens instead.
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

    /// What is stored and what was asked.
    package func state() async throws -> S3StubState {
        try await host.ask(PlainCommand(command: "state"))
    }

    /// Flips a bit of an object at rest: neither its size nor its tag tells.
    package func damage(_ key: String, at offset: Int64 = 0) async throws {
        try await host.tell(DamageCommand(key: key, offset: offset))
    }

    /// From now on it takes connections and says nothing.
    package func freeze() async throws { try await host.tell(PlainCommand(command: "freeze")) }

    /// It goes on after ``freeze()``.
    package func thaw() async throws { try await host.tell(PlainCommand(command: "thaw")) }

    package func stop() async { await host.stop() }
}

/// What the stand-in has, and what it was asked.
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
    /// Refusals by code, without those that it was told to give: of a correct client, those that it meant.
    package var errors: [String: Int]
    /// What it did wrong as it was told, by the action's name.
    package var faults: [String: Int]
    /// Most requests at the same time.
    package var mostAtOnce: Int

    /// Number of requests of a kind.
    package func count(_ operation: S3Operation) -> Int {
        operation == .all ? requests.values.reduce(0, +) : requests[operation.rawValue] ?? 0
    }
}
