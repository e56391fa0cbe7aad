/// The received, unread bytes of one response; decides when to pause and resume the transfer.
///
/// A value without clock or I/O. ``Exchange`` holds one behind its lock.
package struct BodyBuffer: Equatable {
    /// Buffered bytes that pause the transfer. Memory is bounded to about this plus one flush of
    /// the transfer plus one receive buffer of libcurl, which keeps the bytes it could not deliver.
    package static let highWaterByteCount = 1024 * 1024
    /// Buffered bytes at which a paused transfer resumes. Well below the limit, to avoid flapping.
    static let lowWaterByteCount = 256 * 1024

    private var chunks: [[UInt8]] = []
    private(set) var byteCount = 0
    package private(set) var isPaused = false

    package init(
        byteCount: Int = 0,
        isPaused: Bool = false
    ) {
        self.byteCount = byteCount
        self.isPaused = isPaused
    }

    var isFull: Bool { byteCount >= Self.highWaterByteCount }

    package mutating func append(_ chunk: [UInt8]) {
        chunks.append(chunk)
        byteCount += chunk.count
    }

    /// Pauses the transfer if the buffer is still full. Returns whether it did.
    package mutating func pauseIfFull() -> Bool {
        isPaused = isFull
        return isPaused
    }

    /// Removes and returns the oldest chunk, and whether the transfer must resume now.
    package mutating func takeFirst() -> (chunk: [UInt8], mustResume: Bool)? {
        guard !chunks.isEmpty else { return nil }
        // Only a few chunks are ever held, so shifting the rest is cheap.
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
