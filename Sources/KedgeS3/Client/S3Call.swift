internal import HTTPTypes
internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel
internal import KedgeTransport

/// The bytes of a request, and their digest for the signature.
package struct S3Body: Sendable {
    let content: TransportBody
    let digest: SHA256Digest

    init(_ content: TransportBody, digest: SHA256Digest) {
        self.content = content
        self.digest = digest
    }

    package init(_ bytes: [UInt8]) {
        self.init(.bytes(bytes), digest: SHA256Hasher.digest(of: bytes))
    }
}

/// One request to the store, before it is signed.
struct S3Call: Sendable {
    /// The S3 operation, for logs; for example `UploadPart`.
    let operation: String
    let method: HTTPRequest.Method
    /// Nil for a request about the bucket.
    var key: String?
    var query: [QueryItem] = []
    var fields: [(name: String, value: String)] = []
    var body: S3Body?
    /// Longest time that the store may be silent.
    var stallTimeout: Duration?
    /// Replaces the timeout of the configuration.
    var timeout: Duration?
    /// The status of a success, besides 200.
    var success = 200

    init(_ operation: String, _ method: HTTPRequest.Method, key: String? = nil) {
        self.operation = operation
        self.method = method
        self.key = key
    }

    /// The slowest expected rate of a body, in bytes per second.
    private static let slowestRate: Int64 = 256 << 10

    /// Returns the timeout of the call, including its retries.
    func timeLimit(_ usual: Duration) -> Duration {
        (timeout ?? usual) + .seconds((body?.content.byteCount ?? 0) / Self.slowestRate)
    }
}

/// The pauses between retries. A parameter, so that tests neither wait nor depend on chance.
package struct S3Pacing: Sendable {
    private static let base = Duration.milliseconds(100)
    private static let longest = Duration.seconds(5)

    var sleep: @Sendable (Duration) async throws -> Void
    /// Returns a number from 0 to 1.
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

    /// Returns the pause before the next attempt: random up to a bound that doubles, so that
    /// clients that failed together do not retry together.
    func delay(afterTries count: Int, asked: Duration?) -> Duration {
        let bound = min(Self.longest, Self.base * (1 << min(count, 16)))
        let jittered = bound * random()
        return asked.map { $0 + jittered } ?? jittered
    }
}
