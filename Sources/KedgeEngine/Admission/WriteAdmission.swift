package import KedgeModel

/// Whose share of the service a body takes.
package struct ShareKey: Hashable, Sendable {
    package var owner: OwnerID
    package var address: ClientAddress

    package init(owner: OwnerID, address: ClientAddress) {
        self.owner = owner
        self.address = address
    }
}

/// Decides who may write a body now, and who is asked to come back so that others can.
///
/// A value without a clock: events bring the time and what was measured, decisions come back. There
/// are places for so many bodies. As long as one is free, everybody gets one. When none is, places
/// of slow bodies are taken back, first from the share that has most of them, down to half of all
/// places: so the other half is there for bodies that come quickly, and that need a place for a
/// moment only. Bodies that count only as a whole are never stopped; they get at most three
/// quarters of the places. While places are scarce, one share gets half of these for bodies that
/// are not known to come quickly, and a quarter for slow ones.
///
/// Its memory is bounded by the number of places, and by two tables of fixed size.
package struct WriteAdmission: Equatable, Sendable {
    package typealias WriterID = UInt64

    /// A body that wants to be written.
    package struct Arrival: Sendable {
        package var key: ShareKey
        /// The upload that it is part of; nil for one that nobody can name yet.
        package var session: SessionID?
        /// True when what it brings counts as it comes, so that stopping it loses nothing.
        package var isEvictable: Bool

        package init(key: ShareKey, session: SessionID?, isEvictable: Bool) {
            self.key = key
            self.session = session
            self.isEvictable = isEvictable
        }
    }

    /// What follows from an arrival.
    package enum Decision: Equatable, Sendable {
        /// The writer may begin. Others are to be stopped, and to save what they brought.
        case admitted(WriterID, evicting: [WriterID])
        /// There is no place now.
        case refused(evicting: [WriterID])
        /// Its share has as many slow bodies as it may have, and will for some time.
        case postponed(evicting: [WriterID])

        package var evicted: [WriterID] {
            switch self {
            case .admitted(_, let evicted), .refused(let evicted), .postponed(let evicted): evicted
            }
        }
    }

    /// How a body came along since it was looked at last.
    package enum Pace: Equatable, Sendable {
        case slow(bytesPerSecond: Int64)
        case fast
    }

    struct Writer: Equatable, Sendable {
        var arrival: Arrival
        /// Nil while it is not known to be slow.
        var slowRate: Int64?
        /// Admitted beside slow bodies of its share, and not known to be fast: counts as one of them.
        var isSuspect: Bool
        /// Told to stop, and saving what it brought.
        var isLeaving = false
        /// Came quickly when it was looked at last.
        var isFast = false
        var isSlow: Bool { slowRate != nil }
    }

    /// How long places count as scarce after somebody found none.
    static let crowdedTime: Duration = .seconds(5)
    /// How long a share that found no place keeps others with more than theirs from taking the next one.
    static let waitingTime: Duration = .seconds(2)
    /// Most places that are taken back at a time: each saves bytes, which costs a sync.
    static let maxEvictionCount = 8
    /// Size of the table of shares that wait.
    static let maxWaitingCount = 64
    /// Size of the table of uploads that were fast.
    static let maxProvenCount = 1024

    package let placeCount: Int
    private(set) var writers: [WriterID: Writer] = [:]
    private var nextID: WriterID = 0
    private var crowdedUntil: Duration?
    private var waiting: [ShareKey: Duration] = [:]
    private var proven = RecentSet<SessionID>(capacity: maxProvenCount)

    package init(placeCount: Int) {
        precondition(placeCount > 0, "without places nothing can be written")
        self.placeCount = placeCount
    }

    /// Bodies that are written, apart from those that are leaving.
    package var activeCount: Int { writers.values.count { !$0.isLeaving } }
    /// Most slow bodies that keep their places while others want one.
    package var slowPlaceCount: Int { max(1, placeCount / 2) }
    /// Most bodies at a time that count only as a whole.
    package var wholePlaceCount: Int { max(1, placeCount - placeCount / 4) }
    /// Entries of all tables, for a test of their bounds.
    package var tableCount: Int { writers.count + waiting.count + proven.count }

    /// The body turned out to count only as a whole.
    package mutating func hold(_ id: WriterID) { writers[id]?.arrival.isEvictable = false }

    /// Somebody wants to write.
    ///
    /// - Parameter now: Time since any moment, never less than before.
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
            // Comes back again and again: places stay scarce as long.
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

    /// What was measured of a body.
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

    /// A body has ended.
    ///
    /// - Parameter isWhole: All of it was taken.
    package mutating func depart(_ id: WriterID, isWhole: Bool) {
        guard let writer = writers.removeValue(forKey: id) else { return }
        if isWhole, !writer.isSlow, let session = writer.arrival.session { proven.insert(session) }
    }
}

extension WriteAdmission.Arrival: Equatable {}
