// Who has how much, and who gives way.
extension WriteAdmission {
    /// Bodies that are slow, or likely to be.
    var suspectCount: Int { writers.values.count { !$0.isLeaving && ($0.isSlow || $0.isSuspect) } }

    private func slowCount(of key: ShareKey) -> Int {
        writers.values.count { !$0.isLeaving && $0.arrival.key == key && $0.isSlow }
    }

    /// True for a share that has slow bodies, unless this upload was fast until now.
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
        // Whole bodies are never evicted, so one share gets no more than half before they are
        // measured.
        guard own.count < max(1, wholePlaceCount / 2) else { return false }
        return own.count { $0.isSlow } < max(1, wholePlaceCount / 4)
    }

    /// True when others wait, and the share has as many places as each would get if all had the same.
    func holdsMoreThanItsShare(_ key: ShareKey) -> Bool {
        let others = waitingKeys.subtracting([key])
        guard !others.isEmpty else { return false }
        let active = writers.values.filter { !$0.isLeaving }
        let keys = others.union(active.map(\.arrival.key)).union([key])
        let held = active.count { $0.arrival.key == key }
        return held >= max(1, placeCount / keys.count)
    }

    /// Takes places of slow bodies back, as far as they have more than half.
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

    /// The slow body that makes room for another share's, or nil. One of a share with slow bodies takes no
    /// place of another that would then have fewer: they would push each other out for ever.
    func victim(for key: ShareKey, isSuspect: Bool) -> WriterID? {
        victim(holdingMoreThan: isSuspect ? slowCount(of: key) + 1 : 0)
    }

    private var slowCount: Int { writers.values.count { !$0.isLeaving && $0.isSlow } }

    /// The slowest body of the share that has most slow ones, if those are more than so many.
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
