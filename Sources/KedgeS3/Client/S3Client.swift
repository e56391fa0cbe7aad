internal import HTTPTypes
internal import KedgeCurl
internal import KedgeFiles
internal import KedgeLocks
internal import KedgeMetrics
internal import KedgeModel
internal import KedgeTransport

/// A client for one bucket: signs and sends requests, and retries transient failures.
package final class S3Client: Sendable {
    /// Properties of the store that the process has discovered.
    struct StoreProperties {
        var region: String
        /// The store's clock minus ours.
        var clockOffset = Duration.zero
        var takesChecksums: Bool
    }

    /// Limit of an answer in bytes; one with a thousand entries is much smaller.
    private static let maxAnswerByteCount = 4 << 20
    /// Largest number of retries after the store received damaged bytes.
    private static let maxDamageCount = 2

    let configuration: S3Configuration
    private let http: CurlClient
    private let credentials: any CredentialsProvider
    private let clock: any WallClock
    private let pacing: S3Pacing
    private let metrics: Metrics
    let learned: Mutex<StoreProperties>

    init(
        _ configuration: S3Configuration, credentials: any CredentialsProvider,
        clock: any WallClock, pacing: S3Pacing, metrics: Metrics
    ) {
        self.configuration = configuration
        self.credentials = credentials
        self.clock = clock
        self.pacing = pacing
        self.metrics = metrics
        learned = Mutex(
            StoreProperties(
                region: configuration.region, takesChecksums: configuration.sendsChecksums))
        var settings = CurlClient.Configuration()
        settings.maxConnectionsPerHost = configuration.maxConnectionCount
        http = CurlClient(configuration: settings)
    }

    func close() async { await http.shutdown() }

    /// Sends the call and returns the fields and the body of a successful answer.
    func answer(_ call: S3Call) async throws(S3Failure) -> (fields: HTTPFields, body: [UInt8]) {
        try await perform(call) { (response) async throws(S3Failure) in
            do throws(TransportError) {
                let body = try await response.body.collect(upTo: Self.maxAnswerByteCount)
                return (response.headerFields, body)
            } catch {
                throw S3Failure(error, call.operation)
            }
        }
    }

    /// Sends the call, and retries it while that may help and its timeout is not over.
    ///
    /// - Parameter take: Reads a successful answer. An error that it throws counts as a failed
    ///   request.
    func perform<Value: Sendable>(
        _ call: S3Call, take: (TransportResponse) async throws(S3Failure) -> Value
    ) async throws(S3Failure) -> Value {
        let end = ContinuousClock.now + call.timeLimit(configuration.timeout)
        var attempts = Attempts()
        while true {
            do throws(S3Failure) {
                return try await attempt(call, until: end, take)
            } catch {
                guard let delay = await delay(before: &attempts, after: error),
                    ContinuousClock.now + delay < end
                else { throw error }
                do {
                    try await pacing.sleep(delay)
                } catch {
                    throw S3Failure(code: "cancelled", detail: "\(call.operation): cancelled")
                }
            }
        }
    }

    /// Returns a presigned URL of an object. Until it expires, any client that has it can read the
    /// object.
    func presignedURL(
        of key: String, query: [QueryItem], expiresAfterSeconds: Int
    ) async throws -> String {
        let (host, path) = target(key)
        let request = SignableRequest(
            method: "GET", host: host, path: path, query: query,
            payloadHash: SignableRequest.unsignedPayload)
        let signer = RequestSigner(
            credentials: try await credentials.credentials(),
            region: learned.withLock { $0.region })
        let signed = signer.presignedQuery(
            for: request, at: now, expiresAfterSeconds: expiresAfterSeconds)
        return "\(configuration.endpoint.scheme)://\(host)\(path)?\(signed)"
    }
}

// MARK: - One try

extension S3Client {
    private func attempt<Value: Sendable>(
        _ call: S3Call, until end: ContinuousClock.Instant,
        _ take: (TransportResponse) async throws(S3Failure) -> Value
    ) async throws(S3Failure) -> Value {
        let used: S3Credentials
        do {
            used = try await credentials.credentials()
        } catch {
            throw S3Failure(code: "NoCredentials", status: 403, detail: "\(error)")
        }
        var request = signed(call, with: used)
        request.stallTimeout = call.stallTimeout
        // A GET body is read at the reader's pace, so only other requests get a timeout.
        if call.method != .get { request.timeout = end - .now }
        let start = ContinuousClock.now
        var status = "failed"
        defer {
            metrics.increment(.bucketRequests, [call.operation, status])
            metrics.observe(.bucketRequestSeconds, since: start, [call.operation])
        }
        do throws(S3Failure) {
            let response = try await send(request, call.operation)
            status = "\(response.status / 100)xx"
            guard [200, call.success].contains(response.status) else {
                throw await failure(in: response, call.operation)
            }
            return try await take(response)
        } catch {
            if error.isBadCredentials || error.isUnexplained { await credentials.invalidate(used) }
            throw error
        }
    }

    private func send(
        _ request: TransportRequest, _ operation: String
    ) async throws(S3Failure) -> TransportResponse {
        do throws(TransportError) {
            return try await http.send(request)
        } catch {
            throw S3Failure(error, operation)
        }
    }

    private func failure(in response: TransportResponse, _ operation: String) async -> S3Failure {
        // Without the body, the status describes the failure.
        let body = try? await response.body.collect(upTo: 64 << 10)
        return S3Failure(response, body: body ?? [], operation)
    }

    private func signed(_ call: S3Call, with credentials: S3Credentials) -> TransportRequest {
        let (host, path) = target(call.key)
        let time = now
        var signable = SignableRequest(
            method: call.method.rawValue, host: host, path: path, query: call.query,
            fields: call.fields,
            payloadHash: call.body?.digest.hex ?? SignableRequest.emptyPayload)
        signable.fields += [
            ("x-amz-content-sha256", signable.payloadHash), ("x-amz-date", time.text),
        ]
        if let token = credentials.sessionToken {
            signable.fields.append(("x-amz-security-token", token.text))
        }
        let signer = RequestSigner(
            credentials: credentials, region: learned.withLock { $0.region })
        var url = "\(configuration.endpoint.scheme)://\(host)\(path)"
        if !call.query.isEmpty { url += "?\(signable.canonicalQuery)" }
        var request = TransportRequest(method: call.method, url: url, body: call.body?.content)
        for (name, value) in signable.fields { request.headerFields[.named(name)] = value }
        request.headerFields[.authorization] = signer.authorization(for: signable, at: time)
        return request
    }

    private func target(_ key: String?) -> (host: String, path: String) {
        let object = PercentEncoding.encode(key ?? "", keepingSlashes: true)
        return switch configuration.style {
        case .path: (configuration.endpoint.host, "/\(configuration.bucket)/\(object)")
        case .virtual: ("\(configuration.bucket).\(configuration.endpoint.host)", "/\(object)")
        }
    }

    private var now: SigningTime {
        SigningTime(clock.now().advanced(by: learned.withLock { $0.clockOffset }))
    }
}

// MARK: - Trying again

extension S3Client {
    /// The attempts of one call.
    private struct Attempts {
        var count = 0
        var damageCount = 0
        var hasSetClock = false
        var hasChangedRegion = false
        var hasRenewedCredentials = false
    }

    /// Returns the pause before the next attempt; nil when a retry would not help.
    private func delay(
        before attempts: inout Attempts, after failure: S3Failure
    ) async -> Duration? {
        if let offset = clockOffset(in: failure), !attempts.hasSetClock {
            attempts.hasSetClock = true
            learned.withLock { $0.clockOffset = offset }
            return .zero
        }
        if failure.isElsewhere, let region = failure.region, !attempts.hasChangedRegion {
            attempts.hasChangedRegion = true
            learned.withLock { $0.region = region }
            return .zero
        }
        if failure.isBadCredentials || failure.isUnexplained, !attempts.hasRenewedCredentials {
            attempts.hasRenewedCredentials = true
            return .zero
        }
        if failure.isDamage, attempts.damageCount < Self.maxDamageCount {
            attempts.damageCount += 1
            return .zero
        }
        guard failure.isTransient else { return nil }
        defer { attempts.count += 1 }
        return pacing.delay(afterTries: attempts.count, asked: failure.retryAfter)
    }

    /// A smaller clock offset does not invalidate a signature.
    private static let bearableOffset = Duration.seconds(60)

    /// Returns how far the store's clock is ahead of ours, if that may be the reason for a refusal.
    private func clockOffset(in failure: S3Failure) -> Duration? {
        guard failure.isSkew || failure.isUnexplained, let date = failure.date else { return nil }
        let offset = date.duration(since: clock.now())
        let error = offset - learned.withLock { $0.clockOffset }
        let isBearable = max(error, .zero - error) <= Self.bearableOffset
        return failure.isSkew || !isBearable ? offset : nil
    }
}
