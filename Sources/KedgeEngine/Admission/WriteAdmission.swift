package import KedgeModel

/// The owner and client address that share places for writing.
package struct ShareKey: Hashable, Sendable {
    package var owner: OwnerID
    package var address: ClientAddress

    package init(owner: OwnerID, address: ClientAddress) {
        self.owner = owner
        self.address = address
    }
}

/// Decides which request bodies may be written now, and which ones are evicted for others.
///
/// A value without a clock: the caller passes times and measurements, and receives decisions.
///
/// While places are not scarce, every body gets a free one. When none is free, slow bodies are
/// evicted, first from the share that has the most of them, until they hold half of all places. The
/// other half remains for fast bodies, which need a place only briefly.
///
/// Bodies that count only when complete are never evicted; they get at most three quarters of the
/// places. While places are scarce, one share gets half of these for bodies that are not known to
/// be fast, and a quarter for slow ones.
///
/// Memory is bounded by the number of places and two tables of fixed size.
package struct WriteAdmission: Equatable, Sendable {
    package typealias WriterID = UInt64

    /// A body that asks for a place.
    package struct Arrival: Sendable {
        package var key: ShareKey
        /// The upload that it belongs to; nil while the upload has no identifier.
        package var session: SessionID?
        /// True when received bytes are kept, so that stopping the body loses nothing.
        package var isEvictable: Bool

        package init(key: ShareKey, session: SessionID?, isEvictable: Bool) {
            self.key = key
            self.session = session
            self.isEvictable = isEvictable
        }
    }

    /// The answer to an arrival, with the writers to evict. An evicted writer saves what it
    /// received.
    package enum Decision: Equatable, Sendable {
        /// The writer may begin.
        case admitted(WriterID, evicting: [WriterID])
        /// No place is free.
        case refused(evicting: [WriterID])
        /// The share has its maximum of slow bodies, and will have for some time.
        case postponed(evicting: [WriterID])

        package var evicted: [WriterID] {
            switch self {
            case .admitted(_, let evicted), .refused(let evicted), .postponed(let evicted): evicted
            }
        }
    }

    /// The rate of a body since it was last measured.
    package enum Pace: Equatable, Sendable {
        case slow(bytesPerSecond: Int64)
        case fast
    }

    struct Writer: Equatable, Sendable {
        var arrival: Arrival
        /// Nil unless the body is known to be slow.
        var slowRate: Int64?
        /// Admitted while its share has slow bodies, and not known to be fast. Counts as slow.
        var isSuspect: Bool
        /// Evicted, and still saving what it received.
        var isLeaving = false
        /// Was fast at the last measurement.
        var isFast = false
        var isSlow: Bool { slowRate != nil }
    }

    /// Duration for which places count as scarce after an arrival found none.
    static let crowdedTime: Duration = .seconds(5)
    /// Duration for which a share that found no place has priority over shares that hold more than
    /// theirs.
    static let waitingTime: Duration = .seconds(2)
    /// Maximum number of evictions at a time: each one saves bytes, which costs a sync.
    static let maxEvictionCount = 8
    /// Capacity of the table of waiting shares.
    static let maxWaitingCount = 64
    /// Capacity of the table of uploads that were fast.
    static let maxProvenCount = 1024

    package let placeCount: Int
    private(set) var writers: [WriterID: Writer] = [:]
    private var nextID: WriterID = 0
    private var crowdedUntil: Duration?
    private var waiting: [ShareKey: Duration] = [:]
    private var proven = RecentSet<SessionID>(capacity: maxProvenCount)

    package init(placeCount: Int) {
        precondition(placeCount > 0, "there is at least one write place")
        self.placeCount = placeCount
    }

    /// Number of bodies that are being written, without evicted ones.
    package var activeCount: Int { writers.values.count { !$0.isLeaving } }
    /// Maximum number of slow bodies that keep their places while others wait.
    package var slowPlaceCount: Int { max(1, placeCount / 2) }
    /// Maximum number of concurrent bodies that count only when complete.
    package var wholePlaceCount: Int { max(1, placeCount - placeCount / 4) }
    /// Number of entries in all tables, for tests of their bounds.
    package var tableCount: Int { writers.count + waiting.count + proven.count }

    /// Marks a body as one that counts only when complete.
    package mutating func hold(_ id: WriterID) { writers[id]?.arrival.isEvictable = false }

    /// Decides whether a body gets a place.
    ///
    /// - Parameter now: Monotonic time since any fixed moment.
    package mutating func arrive(_ arrival: Arrival, at now: Duration) -> Decision {
        waiting = waiting.filter { $0.value > now }
        let isFull = activeCount >= placeCount
        if isFull { crowdedUntil = now + Self.crowdedTime }
        let isCrowded = crowdedUntil.map { $0 > now } ?? false
        var evicted = isCrowded ? evictSurplus() : []
        guard arrival.isEvictable || hasRoomForWhole(of: arrival.key, isCrowded: isCrowded) else {
            return .refused(evicting: evicted)
        }
        let isSuspect = isCrowded && isSuspect(arrival)
        if isSuspect, suspectCount >= slowPlaceCount + max(1, placeCount / 8) {
            // The postponed client will retry. Until then places count as scarce.
            crowdedUntil = now + Self.crowdedTime
            return .postponed(evicting: evicted)
        }
        if holdsMoreThanItsShare(arrival.key) { return .refused(evicting: evicted) }
        if activeCount >= placeCount {
            guard let victim = victim(for: arrival.key, isSuspect: isSuspect) else {
                wait(arrival.key, until: now + Self.waitingTime)
                return .refused(evicting: evicted)
            }
            evict(victim)
            evicted.append(victim)
        }
        waiting[arrival.key] = nil
        nextID += 1
        writers[nextID] = Writer(arrival: arrival, isSuspect: isSuspect)
        return .admitted(nextID, evicting: evicted)
    }

    var waitingKeys: Set<ShareKey> { Set(waiting.keys) }

    func isProven(_ session: SessionID) -> Bool { proven.contains(session) }

    mutating func evict(_ id: WriterID) { writers[id]?.isLeaving = true }

    private mutating func wait(_ key: ShareKey, until time: Duration) {
        guard waiting[key] != nil || waiting.count < Self.maxWaitingCount else { return }
        waiting[key] = time
    }

    /// Records the measured pace of a body.
    package mutating func observe(_ id: WriterID, _ pace: Pace) {
        guard let writer = writers[id], !writer.isLeaving else { return }
        switch pace {
        case .slow(let rate):
            writers[id]?.slowRate = rate
            writers[id]?.isFast = false
            if let session = writer.arrival.session { proven.remove(session) }
        case .fast:
            writers[id]?.slowRate = nil
            writers[id]?.isFast = true
            writers[id]?.isSuspect = false
            if let session = writer.arrival.session { proven.insert(session) }
        }
    }

    /// Removes a body that has ended.
    ///
    /// - Parameter isWhole: Whether all of it was received.
    package mutating func depart(_ id: WriterID, isWhole: Bool) {
        guard let writer = writers.removeValue(forKey: id) else { return }
        if isWhole, !writer.isSlow, let session = writer.arrival.session { proven.insert(session) }
    }
}

extension WriteAdmission.Arrival: Equatable {}
