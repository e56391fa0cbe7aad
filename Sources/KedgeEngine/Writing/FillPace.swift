/// How many bytes of a body to gather before they are written.
///
/// Large buffers make fast links cheap; on a slow one they would hold back for many seconds what a
/// checkpoint could already record. So it begins small and grows while buffers fill quickly.
struct FillPace {
    private(set) var byteCount: Int
    private let bounds: ClosedRange<Int>
    private let interval: Duration

    init(_ configuration: EngineConfiguration) {
        let capacity = configuration.bufferCapacity
        // Fewer bytes would not be recorded anyway.
        bounds = min(Int(clamping: configuration.minCheckpointByteCount), capacity)...capacity
        byteCount = bounds.lowerBound
        interval = configuration.checkpointInterval
    }

    /// Takes the time into account that the last buffer took to fill.
    mutating func adapt(to elapsed: Duration) {
        if elapsed < interval / 4 {
            byteCount = min(byteCount * 2, bounds.upperBound)
        } else if elapsed > interval / 2 {
            byteCount = max(byteCount / 2, bounds.lowerBound)
        }
    }
}
