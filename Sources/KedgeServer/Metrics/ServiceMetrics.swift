internal import Foundation
package import KedgeEngine
internal import KedgeIdentity
internal import KedgeMetrics
internal import KedgeModel
internal import KedgeTLS

/// Records what the service does, for `GET /metrics`.
package struct ServiceMetrics: Sendable {
    let metrics: Metrics

    /// Adds the collectors of a service's gauges to the metrics of its engine.
    package init(engine: TransferEngine) {
        metrics = engine.metrics
        metrics.addCollector { await Self.samples(of: engine) }
        metrics.addCollector { ProcessStatus.samples() }
        metrics.set(.processStartTime, to: Date.now.timeIntervalSince1970.rounded())
        metrics.set(.buildInfo, to: 1, [KedgeVersion.current])
    }

    /// Adds the collector of the number of open connections.
    func observe(_ connections: ConnectionTable) {
        metrics.addCollector { [MetricSample(.connections, Double(connections.openCount))] }
    }

    /// Begins to count handshakes. All outcomes are zero at first, so that Prometheus sees the
    /// first one of each.
    func observeHandshakes() {
        for outcome in HandshakeOutcome.allCases {
            metrics.increment(.tlsHandshakes, by: 0, [outcome.rawValue])
        }
    }

    func handshakeEnded(_ outcome: HandshakeOutcome) {
        metrics.increment(.tlsHandshakes, [outcome.rawValue])
    }

    func certificateLoaded(_ certificate: ServerCertificate) {
        let expiry = certificate.expiresAt.millisecondsSinceEpoch / 1000
        metrics.set(.tlsCertificateExpiry, to: Double(expiry))
    }

    /// Adds the collector of the age of the issuers' keys.
    func observe(_ bearers: any BearerVerifier) {
        metrics.addCollector {
            guard let age = await bearers.keyAge() else { return [] }
            return [MetricSample(.keyAge, age / .seconds(1))]
        }
    }

    /// Records the check of a credential.
    func authenticated(_ checked: CheckedCredential) {
        metrics.increment(.authentications, [checked.kind, checked.outcome.rawValue])
        metrics.observe(
            .authenticationSeconds, seconds: checked.duration / .seconds(1), [checked.kind])
    }

    func requestBegan() { metrics.increment(.httpRequestsInFlight) }

    /// Records a request whose response begins.
    ///
    /// - Parameters:
    ///   - bodyByteCount: Number of received bytes of the body.
    ///   - rateLimit: The kind of the rate that the request exceeds; nil for none.
    func requestEnded(
        method: String, route: String, uploadProtocol: String, status: Int, duration: Duration,
        bodyByteCount: Int64, error: ErrorCode?, rateLimit: String?
    ) {
        metrics.increment(.httpRequestsInFlight, by: -1)
        metrics.increment(
            .httpRequests, [method, route, uploadProtocol, "\(status / 100)xx"])
        metrics.observe(
            .httpRequestSeconds, seconds: duration / .seconds(1), [method, route, uploadProtocol])
        if bodyByteCount > 0 {
            metrics.increment(.uploadBytes, by: bodyByteCount, [uploadProtocol])
        }
        if let error { metrics.increment(.errors, [error.rawValue]) }
        if let rateLimit { metrics.increment(.rateLimited, [rateLimit]) }
    }

    /// Records an upload that an owner's limit has refused.
    func refused(by limit: QuotaRefusal.Kind) {
        metrics.increment(.quotaRefusals, [limit.rawValue])
    }

    /// Reads the gauges of the stores. A store that does not answer leaves its values out.
    private static func samples(of engine: TransferEngine) async -> [MetricSample] {
        var samples = [
            MetricSample(.writesInFlight, Double(engine.activeWriteCount)),
            MetricSample(.downloadBytes, Double(engine.downloadedByteCount)),
            MetricSample(.buffersInUse, Double(engine.lentBufferByteCount)),
            MetricSample(.storageReservedBytes, Double(engine.reservedByteCount)),
        ]
        let scrubbed = engine.scrubbed
        samples += [
            MetricSample(.scrubbedBlobs, Double(scrubbed.verifiedCount), ["verified"]),
            MetricSample(.scrubbedBlobs, Double(scrubbed.damagedCount), ["damaged"]),
            MetricSample(.scrubbedBlobs, Double(scrubbed.restoredCount), ["restored"]),
            MetricSample(.scrubbedBytes, Double(scrubbed.byteCount)),
        ]
        // A failure is visible as absent values and in `/readyz`.
        if let backlog = try? await engine.scrubBacklog() {
            samples += [
                MetricSample(.damagedBlobs, Double(backlog.damagedCount)),
                MetricSample(.scrubWaitingBlobs, Double(backlog.newCount)),
            ]
        }
        if let rows = try? await engine.rowCounts() {
            samples += [
                MetricSample(.sessions, Double(rows.openSessions), ["open"]),
                MetricSample(.sessions, Double(rows.finalizingSessions), ["finalizing"]),
                MetricSample(.garbageWaiting, Double(rows.garbage)),
            ]
        }
        if let free = try? await engine.availableByteCount() {
            samples.append(MetricSample(.storageFreeBytes, Double(free)))
        }
        return samples
    }
}
