internal import KedgeLocks

/// Reads values that are known only by asking, such as rows in a database. Keeps the result, so
/// that frequent scrapes do not load the stores.
final class MetricCollectors: Sendable {
    static let lifetime: Duration = .seconds(10)

    private struct Collector: Sendable {
        let collect: @Sendable () async -> [MetricSample]
    }

    private struct State {
        var collectors: [Collector] = []
        var samples: [MetricSample] = []
        var collectedAt: ContinuousClock.Instant?
        var isCollecting = false
    }

    private let state = Mutex(State())

    func add(_ collect: @escaping @Sendable () async -> [MetricSample]) {
        state.withLock { state in
            state.collectors.append(Collector(collect: collect))
            state.collectedAt = nil
        }
    }

    /// The samples of all collectors, at most ``lifetime`` old.
    ///
    /// Runs the collectors once at a time. A scrape that arrives while they run gets the earlier
    /// samples, so a slow store does not pile up scrapes.
    func samples(at now: ContinuousClock.Instant) async -> [MetricSample] {
        guard let collectors = startCollecting(at: now) else {
            return state.withLock { $0.samples }
        }
        var samples: [MetricSample] = []
        for collector in collectors { samples += await collector.collect() }
        finishCollecting(samples, at: now)
        return samples
    }

    /// - Returns: Nil while the earlier samples count.
    private func startCollecting(at now: ContinuousClock.Instant) -> [Collector]? {
        state.withLock { state in
            if state.isCollecting { return nil }
            if let last = state.collectedAt, now - last < Self.lifetime { return nil }
            state.isCollecting = true
            return state.collectors
        }
    }

    private func finishCollecting(_ samples: [MetricSample], at now: ContinuousClock.Instant) {
        state.withLock { state in
            state.samples = samples
            state.collectedAt = now
            state.isCollecting = false
        }
    }
}
