internal import KedgeIdentity
internal import KedgeModel
internal import Logging

/// The keys of one issuer over time: fetched regularly, and once more for an unknown key.
actor IssuerKeys {
    /// Time for which keys count while the issuer does not answer.
    static let maxAge: Duration = .seconds(86_400)
    /// Time between two fetches that tokens cause. Otherwise invented key ids would load the
    /// issuer.
    static let demandInterval: Duration = .seconds(30)
    /// Time until the next fetch after one that failed.
    static let retryInterval: Duration = .seconds(60)

    nonisolated let issuer: ProviderURL
    private let fetch: KeyFetch
    private let now: @Sendable () -> Timestamp
    private let logger: Logger
    private var keys: KeySet?
    private var fetchedAt: Timestamp?
    private var demandedAt: Timestamp?
    private var flight: Task<Void, Never>?
    /// Time until the next regular fetch.
    private(set) var interval = CacheLifetime.usual

    init(_ fetch: KeyFetch, now: @escaping @Sendable () -> Timestamp, logger: Logger) {
        issuer = fetch.issuer
        self.fetch = fetch
        self.now = now
        self.logger = logger
    }

    /// Checks the signature of a token of this issuer.
    func verify(_ token: UnverifiedToken) async throws(BearerRefusal) {
        do throws(BearerRefusal) {
            return try await check(token)
        } catch {
            guard error == .unknownKey || error == .unavailable else { throw error }
        }
        await refreshOnDemand()
        try await check(token)
    }

    /// The age of the keys; nil before the first ones.
    func age() -> Duration? {
        guard let fetchedAt else { return nil }
        let now = now()
        // A clock that was set back must not lengthen the life of the keys.
        guard fetchedAt <= now else {
            self.fetchedAt = now
            return .zero
        }
        return now.duration(since: fetchedAt)
    }

    /// Fetches the keys. Callers that come meanwhile wait for the same fetch. A canceled caller
    /// ends it for all: only the service does this, when it stops.
    func refresh() async {
        let task = flight ?? beginFetch()
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
    }

    private func check(_ token: UnverifiedToken) async throws(BearerRefusal) {
        guard let keys, let current = age(), current <= Self.maxAge else {
            throw BearerRefusal.unavailable
        }
        try await keys.verify(token)
    }

    /// Fetches the keys, unless a token has caused that lately.
    private func refreshOnDemand() async {
        if let flight { return await flight.value }
        let now = now()
        if let last = demandedAt, last <= now, now.duration(since: last) < Self.demandInterval {
            return
        }
        demandedAt = now
        await beginFetch().value
    }

    private func beginFetch() -> Task<Void, Never> {
        // Awaited by the caller. A task of its own, because a request that is canceled must not end
        // the fetch for the others.
        let task = Task { await load() }
        flight = task
        return task
    }

    private func load() async {
        do {
            let result = try await fetch.run()
            keys = result.keys
            fetchedAt = now()
            interval = result.lifetime
        } catch {
            interval = Self.retryInterval
            // The service stops.
            if !Task.isCancelled { report(error) }
        }
        flight = nil
    }

    private func report(_ error: any Error) {
        let text = age().map { "\($0)" } ?? "none"
        logger.warning(
            "fetching the keys of an issuer failed",
            metadata: [
                "issuer": "\(issuer.text)", "keys.age": "\(text)",
                "error": "\(String(reflecting: error))",
            ])
    }
}
