internal import HTTPTypes
internal import KedgeCurl
internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// Bytes that a request sends, with their digest, which the signature covers.
struct S3Body: Sendable {
    let content: CurlRequestBody
    let digest: SHA256Digest

    init(_ content: CurlRequestBody, digest: SHA256Digest) {
        self.content = content
        self.digest = digest
    }

    init(_ bytes: [UInt8]) {
        self.init(.bytes(bytes), digest: SHA256Hasher.digest(of: bytes))
    }
}

/// One request to the store, before it is signed.
struct S3Call: Sendable {
    /// For logs, for example `UploadPart`.
    let operation: String
    let method: HTTPRequest.Method
    /// Nil for what concerns the bucket.
    var key: String?
    var query: [QueryItem] = []
    var fields: [(name: String, value: String)] = []
    var body: S3Body?
    /// How long the store may think without sending a byte.
    var stallTimeout: Duration?
    /// Replaces the patience of the configuration.
    var patience: Duration?
    /// The status that means success, beside 200.
    var success = 200

    init(_ operation: String, _ method: HTTPRequest.Method, key: String? = nil) {
        self.operation = operation
        self.method = method
        self.key = key
    }

    /// The slowest rate at which a body is taken to be moving, in bytes per second.
    private static let slowestRate: Int64 = 256 << 10

    /// How long the call may take with all its repetitions.
    func timeLimit(_ usual: Duration) -> Duration {
        (patience ?? usual) + .seconds((body?.content.byteCount ?? 0) / Self.slowestRate)
    }
}

/// What decides when to try again. A parameter, so that tests neither wait nor toss coins.
package struct S3Pacing: Sendable {
    private static let base = Duration.milliseconds(100)
    private static let longest = Duration.seconds(5)

    var sleep: @Sendable (Duration) async throws -> Void
    /// A number from 0 to 1.
    var random: @Sendable () -> Double

    package init(
        sleep: @escaping @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        },
        random: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
    ) {
        self.sleep = sleep
        self.random = random
    }

    /// How long to wait before the next try: anything up to a bound that doubles, so that many who failed
    /// together do not come back together.
    func delay(afterTries count: Int, asked: Duration?) -> Duration {
        let bound = min(Self.longest, Self.base * (1 << min(count, 16)))
        let jittered = bound * random()
        return asked.map { $0 + jittered } ?? jittered
    }
}
