internal import KedgeLocks

/// The requests of many parties, such as owners, each with the same rate. In memory only, so that
/// each node has its own count.
///
/// The number of parties is bounded. When the table is full, the parties that have used up least
/// are forgotten first. They start again with a full burst.
package final class RateTable<Party: Hashable & Sendable>: Sendable {
    package typealias Instant = RequestRate.Instant

    private let rate: RequestRate
    private let maxPartyCount: Int
    private let now: @Sendable () -> Instant
    /// The end of what each party has used up.
    private let ends = Mutex<[Party: Instant]>([:])

    /// - Parameter now: A clock that never goes back, so that a change of the time of day matters
    ///   to no party.
    package init(
        _ rate: RequestRate, maxPartyCount: Int = 65_536,
        now: @escaping @Sendable () -> Instant = { ContinuousClock.now }
    ) {
        self.rate = rate
        self.maxPartyCount = maxPartyCount
        self.now = now
    }

    /// Number of parties that are remembered.
    package var partyCount: Int { ends.withLock { $0.count } }

    /// Counts a request if it is possible now.
    ///
    /// - Returns: The time until the next one is possible, if this one is not counted; nil if it
    ///   is.
    package func take(_ party: Party) -> Duration? {
        let now = now()
        return ends.withLock { ends in
            if let wait = rate.wait(at: now, usedUntil: ends[party]) { return wait }
            count(party, at: now, in: &ends)
            return nil
        }
    }

    /// Returns the time until the next request is possible; nil if it is possible now. Counts
    /// nothing.
    package func wait(for party: Party) -> Duration? {
        let now = now()
        return ends.withLock { rate.wait(at: now, usedUntil: $0[party]) }
    }

    /// Counts a request that has happened, also above the rate.
    package func count(_ party: Party) {
        let now = now()
        ends.withLock { count(party, at: now, in: &$0) }
    }

    private func count(_ party: Party, at now: Instant, in ends: inout [Party: Instant]) {
        if ends.count >= maxPartyCount, ends[party] == nil { makeRoom(in: &ends, at: now) }
        ends[party] = rate.end(at: now, usedUntil: ends[party])
    }

    private func makeRoom(in ends: inout [Party: Instant], at now: Instant) {
        // A party whose end has passed is like a new one.
        ends = ends.filter { $0.value > now }
        guard ends.count > maxPartyCount / 2 else { return }
        // Half of them at once, so that not each further request has to sort.
        let kept = ends.sorted { $0.value > $1.value }.prefix(maxPartyCount / 2)
        ends = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
    }
}
