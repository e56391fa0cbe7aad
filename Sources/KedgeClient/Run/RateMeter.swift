internal import KedgeLocks
internal import KedgeModel

/// Rate at which this process moves bytes, averaged over the last few seconds.
final class RateMeter: Sendable {
    private struct Sample {
        let time: Timestamp
        var byteCount: Int64
    }

    /// Long enough to average over chunks, short enough to show a change of the link.
    private static let window = Duration.seconds(5)
    private static let resolution = Duration.milliseconds(250)

    private let now: @Sendable () -> Timestamp
    private let samples = Mutex<[Sample]>([])
    private let compared = Mutex<Int64?>(nil)

    init(now: @escaping @Sendable () -> Timestamp) { self.now = now }

    /// Number of bytes that were compared with those that the server has; nil unless that is under
    /// way.
    var comparedByteCount: Int64? {
        get { compared.withLock { $0 } }
        set { compared.withLock { $0 = newValue } }
    }

    /// Counts bytes that moved just now.
    func add(_ byteCount: Int64) {
        let time = now()
        samples.withLock { samples in
            if let last = samples.last, time.duration(since: last.time) < Self.resolution {
                samples[samples.count - 1].byteCount += byteCount
            } else {
                samples.append(Sample(time: time, byteCount: byteCount))
            }
            samples.removeAll { time.duration(since: $0.time) > Self.window }
        }
    }

    /// Returns a counter for one request, to be called with the total sent so far.
    func cumulativeCounter() -> @Sendable (Int64) -> Void {
        let reported = Counter()
        return { [self] total in
            let added = reported.advance(to: total)
            if added > 0 { add(added) }
        }
    }

    /// Bytes per second; nil if nothing moved within the window.
    var bytesPerSecond: Double? {
        let time = now()
        return samples.withLock { samples in
            let recent = samples.filter { time.duration(since: $0.time) <= Self.window }
            guard let first = recent.first else { return nil }
            let elapsed = time.duration(since: first.time) / .seconds(1)
            let byteCount = recent.reduce(Int64(0)) { $0 + $1.byteCount }
            return Double(byteCount) / max(elapsed, 0.25)
        }
    }

    private final class Counter: Sendable {
        private let value = Mutex<Int64>(0)

        func advance(to total: Int64) -> Int64 {
            value.withLock { value in
                defer { value = max(value, total) }
                return total - value
            }
        }
    }
}
