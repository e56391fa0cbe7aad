// Shares, and the choice of the bodies to evict.
extension WriteAdmission {
    /// Number of bodies that are slow or likely to be.
    var suspectCount: Int { writers.values.count { !$0.isLeaving && ($0.isSlow || $0.isSuspect) } }

    private func slowCount(of key: ShareKey) -> Int {
        writers.values.count { !$0.isLeaving && $0.arrival.key == key && $0.isSlow }
    }

    /// True for a share that has slow bodies, unless this upload was fast so far.
    func isSuspect(_ arrival: Arrival) -> Bool {
        if let session = arrival.session, isProven(session) { return false }
        return writers.values.contains {
            !$0.isLeaving && $0.arrival.key == arrival.key && ($0.isSlow || $0.isSuspect)
        }
    }

    func hasRoomForWhole(of key: ShareKey, isCrowded: Bool) -> Bool {
        let whole = writers.values.filter { !$0.arrival.isEvictable }
        guard whole.count < wholePlaceCount else { return false }
        guard isCrowded || activeCount >= max(1, placeCount / 2) else { return true }
        let own = whole.filter { $0.arrival.key == key && !$0.isFast }
        // These bodies are never evicted, so one share gets at most half of their places before
        // they are measured.
        guard own.count < max(1, wholePlaceCount / 2) else { return false }
        return own.count { $0.isSlow } < max(1, wholePlaceCount / 4)
    }

    /// True when other shares wait, and this share already has as many places as an equal split
    /// would give it.
    func holdsMoreThanItsShare(_ key: ShareKey) -> Bool {
        let others = waitingKeys.subtracting([key])
        guard !others.isEmpty else { return false }
        let active = writers.values.filter { !$0.isLeaving }
        let keys = others.union(active.map(\.arrival.key)).union([key])
        let held = active.count { $0.arrival.key == key }
        return held >= max(1, placeCount / keys.count)
    }

    /// Evicts slow bodies while they hold more than half of the places.
    mutating func evictSurplus() -> [WriterID] {
        var evicted: [WriterID] = []
        while evicted.count < Self.maxEvictionCount, slowCount > slowPlaceCount,
            let victim = victim(holdingMoreThan: 0)
        {
            evict(victim)
            evicted.append(victim)
        }
        return evicted
    }

    /// The slow body to evict for another share's, or nil. A suspect arrival never takes a place
    /// from a share that would then have fewer slow bodies than its own. Otherwise both shares
    /// would evict each other forever.
    func victim(for key: ShareKey, isSuspect: Bool) -> WriterID? {
        victim(holdingMoreThan: isSuspect ? slowCount(of: key) + 1 : 0)
    }

    private var slowCount: Int { writers.values.count { !$0.isLeaving && $0.isSlow } }

    /// The slowest body of the share with the most slow bodies, if that share has more than
    /// `bound`.
    private func victim(holdingMoreThan bound: Int) -> WriterID? {
        guard writers.count - activeCount < max(1, placeCount / 2) else { return nil }
        let slow = writers.filter { !$1.isLeaving && $1.isSlow }
        var counts: [ShareKey: Int] = [:]
        for writer in slow.values { counts[writer.arrival.key, default: 0] += 1 }
        return
            slow.filter { $1.arrival.isEvictable && counts[$1.arrival.key, default: 0] > bound }
            .min { left, right in
                let shares = (
                    counts[left.value.arrival.key] ?? 0, counts[right.value.arrival.key] ?? 0
                )
                if shares.0 != shares.1 { return shares.0 > shares.1 }
                let rates = (left.value.slowRate ?? 0, right.value.slowRate ?? 0)
                return rates.0 != rates.1 ? rates.0 < rates.1 : left.key < right.key
            }?.key
    }
}
