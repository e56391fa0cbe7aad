/// The adaptive number of bytes of a body to gather before a write.
///
/// Large buffers make fast links cheap. On a slow link they would keep bytes from a checkpoint for
/// many seconds. The number therefore starts small and grows while buffers fill quickly.
struct CopyBatchSize {
    private(set) var byteCount: Int
    private let bounds: ClosedRange<Int>
    private let interval: Duration

    init(_ configuration: EngineConfiguration) {
        let capacity = configuration.bufferCapacity
        // A checkpoint would not record fewer bytes.
        bounds = min(Int(clamping: configuration.minCheckpointByteCount), capacity)...capacity
        byteCount = bounds.lowerBound
        interval = configuration.checkpointInterval
    }

    /// Adapts to the time that the last buffer took to fill.
    mutating func adapt(to elapsed: Duration) {
        if elapsed < interval / 4 {
            byteCount = min(byteCount * 2, bounds.upperBound)
        } else if elapsed > interval / 2 {
            byteCount = max(byteCount / 2, bounds.lowerBound)
        }
    }
}
