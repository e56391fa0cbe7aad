internal import KedgeFiles
internal import KedgeHash
internal import KedgeLocks
internal import KedgeModel

/// Running SHA-256 of a file from its first byte, computed in order on its own thread.
///
/// Bytes that are in memory for sending are hashed from there; skipped bytes are read from the
/// file. The state can be saved at any time and continued in another process.
final class FileHasher: Sendable {
    private struct State {
        var failure: (any Error)?
        var isStopped = false
        var readBackByteCount: Int64 = 0
    }

    private let file: any OpenFile
    private let state = Mutex(State())
    /// Ordered hashing by the chunks of a download while they are written.
    let fileHashing: OrderedHashing
    // One thread, so jobs run in the order of submission, which is the order of bytes.
    private let pool: BlockingPool
    private let buffers = BufferPool(bufferCapacity: 1 << 20, keptCount: 1)

    /// Continues a saved state, or starts at the first byte.
    init(file: any OpenFile, saved: SavedHash?, environment: ClientEnvironment) {
        self.pool = environment.makePool(1)
        self.file = file
        let restored = saved.flatMap {
            SHA256Hasher(savedState: $0.state, byteCount: $0.offsetBytes)
        }
        fileHashing = OrderedHashing(restored ?? SHA256Hasher())
    }

    /// Current state, without the bytes of pending jobs.
    var saved: SavedHash {
        let hasher = fileHashing.hasher
        return SavedHash(offsetBytes: hasher.byteCount, state: hasher.savedState)
    }

    /// Number of bytes that were read from the file for this hash. Bytes that were hashed while
    /// they were sent or written do not count.
    var readBackByteCount: Int64 { state.withLock { $0.readBackByteCount } }

    /// Hashes a chunk in memory. Returns only when done, so that no chunk is held longer than
    /// necessary. If the hash has not reached the chunk, it catches up from the file.
    ///
    /// - Returns: The chunk's digest.
    func advance(over chunk: ChunkBuffer, at start: Int64) async throws -> SHA256Digest {
        // Inside the job, because an earlier job may bring the hash to the chunk's start.
        try await pool.run { [self] in
            defer { read(upTo: start + chunk.byteCount) }
            return update(with: chunk, at: start)
        }
    }

    /// Continues the hash over bytes in the file, without waiting.
    func readBack(upTo end: Int64) {
        _ = pool.start { [self] in read(upTo: end) }
    }

    /// Hashes the rest of a file of this size. Stops when the task is canceled.
    ///
    /// - Returns: The digest; nil if the hash does not reach that size, as in a shorter file.
    /// - Throws: `TransferError` if the file cannot be read; `CancellationError`.
    func digest(ofSize size: Int64, role: LocalFileRole) async throws -> SHA256Digest? {
        let digest: SHA256Digest?
        do {
            digest = try await withTaskCancellationHandler {
                try await pool.run { [self] () throws -> SHA256Digest? in
                    read(upTo: size)
                    let hasher = fileHashing.hasher
                    if let failure = state.withLock({ $0.failure }) { throw failure }
                    return hasher.byteCount == size ? hasher.digest() : nil
                }
            } onCancel: {
                stop()
            }
        } catch {
            throw TransferError.reading(error, operation: "hash file", role: role)
        }
        // A stopped hash does not reach the end either.
        if digest == nil { try Task.checkCancellation() }
        return digest
    }

    /// Hashes the rest of a file to upload, of its recorded size, and returns its digest. Stops
    /// when the task is canceled.
    ///
    /// - Throws: ``RunInterruption/sourceChanged`` if the file is shorter; `TransferError` if it
    ///   cannot be read; `CancellationError`.
    func digest(ofFile size: Int64) async throws -> SHA256Digest {
        guard let digest = try await digest(ofSize: size, role: .source) else {
            throw RunInterruption.sourceChanged(nil)
        }
        return digest
    }

    /// Ends pending jobs early. Completed work stays in ``saved``.
    func stop() { state.withLock { $0.isStopped = true } }

    private var isOver: Bool { state.withLock { $0.isStopped || $0.failure != nil } }

    private func read(upTo end: Int64) {
        let buffer = buffers.take()
        defer { buffers.give(buffer) }
        fileHashing.beginReadingBack()
        defer { fileHashing.endReadingBack() }
        // A chunk from here on is already hashed, but not durable yet. Its writer calls this again.
        while !isOver, !fileHashing.hasStepAhead, fileHashing.hasher.byteCount < end {
            // Until `endReadingBack()`, only this thread advances the hash.
            var hasher = fileHashing.hasher
            do {
                buffer.removeAll()
                let limit = Int(min(Int64(buffer.capacity), end - hasher.byteCount))
                try buffer.fillFree(limit: limit) { (free) throws(FileError) -> Int in
                    try file.read(into: free, at: hasher.byteCount)
                }
                guard buffer.count > 0 else { return }
                hasher.update(buffer.bytes)
                fileHashing.readBack(hasher)
                state.withLock { $0.readBackByteCount += Int64(buffer.count) }
            } catch {
                state.withLock { $0.failure = error }
            }
        }
    }

    private func update(with chunk: ChunkBuffer, at start: Int64) -> SHA256Digest {
        var hasher = fileHashing.hasher
        let skipped = hasher.byteCount - start
        guard !isOver, (0..<chunk.byteCount).contains(skipped) else { return chunk.digest }
        var own = SHA256Hasher()
        chunk.withBytes { bytes in
            own.update(UnsafeRawBufferPointer(rebasing: bytes[..<Int(skipped)]))
            SHA256Hasher.update(
                &own, &hasher, with: UnsafeRawBufferPointer(rebasing: bytes[Int(skipped)...]))
        }
        fileHashing.readBack(hasher)
        return own.digest()
    }
}
