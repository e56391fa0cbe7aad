/// The bytes of one response that have arrived and not been read yet: when to pause and to resume.
///
/// A value without clock or I/O; ``Exchange`` holds one behind its lock.
struct BodyBuffer: Equatable {
    /// How many buffered bytes pause the transfer. It bounds memory to about this plus one flush of
    /// the transfer plus one receive buffer of libcurl, which keeps what it could not deliver.
    static let highWaterByteCount = 1024 * 1024
    /// How few buffered bytes resume it; well below, so that it does not flap with every chunk.
    static let lowWaterByteCount = 256 * 1024

    private var chunks: [[UInt8]] = []
    private(set) var byteCount = 0
    private(set) var isPaused = false

    var isFull: Bool { byteCount >= Self.highWaterByteCount }

    mutating func append(_ chunk: [UInt8]) {
        chunks.append(chunk)
        byteCount += chunk.count
    }

    /// Notes that the transfer pauses, unless the reader has made room since it last looked.
    mutating func pauseIfFull() -> Bool {
        isPaused = isFull
        return isPaused
    }

    /// The oldest chunk, and whether taking it is the moment to resume the transfer.
    mutating func takeFirst() -> (chunk: [UInt8], mustResume: Bool)? {
        guard !chunks.isEmpty else { return nil }
        // At most a few chunks are ever held, so shifting the rest costs nothing.
        let chunk = chunks.removeFirst()
        byteCount -= chunk.count
        let mustResume = isPaused && byteCount <= Self.lowWaterByteCount
        if mustResume { isPaused = false }
        return (chunk, mustResume)
    }

    mutating func removeAll() {
        chunks = []
        byteCount = 0
    }
}
