/// Who may use a connection to an origin, and who stands in line for one: first come, first served.
///
/// libcurl has `CURLMOPT_MAX_HOST_CONNECTIONS`, but 7.88.1 at times leaves a waiting transfer alone
/// although nothing is under way any more (one in thirty runs of the test for it), and later
/// versions count the wait as connect time (https://github.com/curl/curl/issues/21396). It opens a
/// connection only where no kept one is free, so limiting the transfers limits the connections.
struct ConnectionLine {
    /// A request that waits.
    struct Entry: Sendable {
        let request: CurlRequest
        let exchange: Exchange
        let deadline: ContinuousClock.Instant?
    }

    private struct Origin {
        var activeCount = 0
        var waiting: [Entry] = []
    }

    private let maxConnectionsPerOrigin: Int
    private var origins: [URLOrigin: Origin] = [:]
    /// Not later than the earliest deadline of those who wait.
    private(set) var nextDeadline: ContinuousClock.Instant?

    init(maxConnectionsPerOrigin: Int) {
        precondition(maxConnectionsPerOrigin > 0, "without connections nothing can be sent")
        self.maxConnectionsPerOrigin = maxConnectionsPerOrigin
    }

    /// Lets a request go ahead, or puts it at the end of the line.
    mutating func enter(_ entry: Entry) -> Bool {
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

    /// Takes back what ``enter(_:)`` allowed, and gives it to the one who waited longest.
    mutating func leave(_ key: URLOrigin) -> Entry? {
        guard var origin = origins[key], origin.activeCount > 0 else {
            preconditionFailure("only what has entered leaves")
        }
        if origin.waiting.isEmpty {
            origin.activeCount -= 1
            origins[key] = origin.activeCount == 0 ? nil : origin
            return nil
        }
        // Thousands may wait; moving their few words is cheaper than the request that follows.
        let next = origin.waiting.removeFirst()
        origins[key] = origin
        return next
    }

    /// Takes a request that is over out of the line.
    mutating func remove(_ exchange: Exchange) {
        origins[exchange.origin]?.waiting.removeAll { $0.exchange === exchange }
    }

    /// Takes out those whose deadline has passed.
    mutating func removeExpired(now: ContinuousClock.Instant) -> [Entry] {
        guard let nextDeadline, now >= nextDeadline else { return [] }
        var expired: [Entry] = []
        for key in origins.keys {
            expired += origins[key]?.waiting.filter { $0.hasExpired(at: now) } ?? []
            origins[key]?.waiting.removeAll { $0.hasExpired(at: now) }
        }
        self.nextDeadline = origins.values.flatMap(\.waiting).compactMap(\.deadline).min()
        return expired
    }

    /// Empties the line; what has entered stays so.
    mutating func removeAllWaiting() -> [Entry] {
        let waiting = origins.values.flatMap(\.waiting)
        for key in origins.keys { origins[key]?.waiting = [] }
        nextDeadline = nil
        return waiting
    }
}

extension ConnectionLine.Entry {
    func hasExpired(at now: ContinuousClock.Instant) -> Bool {
        deadline.map { now >= $0 } ?? false
    }
}
