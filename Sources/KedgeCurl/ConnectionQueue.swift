package import KedgeTransport

/// Limits the requests that run at once per origin, and queues the rest: first come, first served.
///
/// Limiting the transfers limits the connections, since libcurl opens a connection only if no kept
/// one is free. libcurl has `CURLMOPT_MAX_HOST_CONNECTIONS`, but 7.88.1 at times never starts a
/// waiting transfer (one in thirty runs of the test for it). Later versions count the wait as
/// connect time (https://github.com/curl/curl/issues/21396).
package struct ConnectionQueue {
    /// A waiting request.
    package struct Entry: Sendable {
        let request: TransportRequest
        package let exchange: Exchange
        let deadline: ContinuousClock.Instant?

        package init(
            request: TransportRequest,
            exchange: Exchange,
            deadline: ContinuousClock.Instant?
        ) {
            self.request = request
            self.exchange = exchange
            self.deadline = deadline
        }
    }

    private struct Origin {
        var activeCount = 0
        var waiting: [Entry] = []
    }

    private let maxConnectionsPerOrigin: Int
    private var origins: [URLOrigin: Origin] = [:]
    /// A time not later than the earliest deadline in the queue.
    package private(set) var nextDeadline: ContinuousClock.Instant?

    package init(maxConnectionsPerOrigin: Int) {
        precondition(maxConnectionsPerOrigin > 0, "there is at least one connection per origin")
        self.maxConnectionsPerOrigin = maxConnectionsPerOrigin
    }

    /// Admits a request, or appends it to the queue. Returns whether it was admitted.
    package mutating func enter(_ entry: Entry) -> Bool {
        var origin = origins[entry.exchange.origin] ?? Origin()
        defer { origins[entry.exchange.origin] = origin }
        if origin.activeCount < maxConnectionsPerOrigin {
            origin.activeCount += 1
            return true
        }
        origin.waiting.append(entry)
        if let deadline = entry.deadline {
            nextDeadline = nextDeadline.map { min($0, deadline) } ?? deadline
        }
        return false
    }

    /// Releases the place of an admitted request, and gives it to the one that waited longest.
    package mutating func leave(_ key: URLOrigin) -> Entry? {
        guard var origin = origins[key], origin.activeCount > 0 else {
            preconditionFailure("only an admitted request can leave")
        }
        if origin.waiting.isEmpty {
            origin.activeCount -= 1
            origins[key] = origin.activeCount == 0 ? nil : origin
            return nil
        }
        // Thousands may wait, but moving their few words costs less than the next request.
        let next = origin.waiting.removeFirst()
        origins[key] = origin
        return next
    }

    /// Removes a request that has ended from the queue.
    package mutating func remove(_ exchange: Exchange) {
        origins[exchange.origin]?.waiting.removeAll { $0.exchange === exchange }
    }

    /// Removes and returns the requests whose deadline has passed.
    package mutating func removeExpired(now: ContinuousClock.Instant) -> [Entry] {
        guard let nextDeadline, now >= nextDeadline else { return [] }
        var expired: [Entry] = []
        for key in origins.keys {
            expired += origins[key]?.waiting.filter { $0.hasExpired(at: now) } ?? []
            origins[key]?.waiting.removeAll { $0.hasExpired(at: now) }
        }
        self.nextDeadline = origins.values.flatMap(\.waiting).compactMap(\.deadline).min()
        return expired
    }

    /// Empties the queue. Admitted requests are not affected.
    mutating func removeAllWaiting() -> [Entry] {
        let waiting = origins.values.flatMap(\.waiting)
        for key in origins.keys { origins[key]?.waiting = [] }
        nextDeadline = nil
        return waiting
    }
}

extension ConnectionQueue.Entry {
    func hasExpired(at now: ContinuousClock.Instant) -> Bool {
        deadline.map { now >= $0 } ?? false
    }
}
