internal import KedgeFiles
internal import KedgeHash
internal import KedgeLocks
internal import KedgeModel

/// The SHA-256 of a growing file, from its start on, computed in order on a thread of its own (R22).
///
/// Bytes that a sender has in memory anyway are taken from there; whatever was passed over is read
/// from the file. The state can be saved at any time and goes on in another process (R71).
final class PrefixHash: Sendable {
    private struct State {
        var hasher: SHA256Hasher
        var failure: (any Error)?
        var isStopped = false
    }

    private let file: any OpenFile
    private let state: Mutex<State>
    // One thread: jobs run in the order in which they were submitted, which is the order of bytes.
    private let pool: BlockingPool
    private let buffers = BufferPool(bufferCapacity: 1 << 20, keptCount: 1)

    /// Goes on from a saved state, or starts at the first byte.
    init(file: any OpenFile, saved: SavedHash?, environment: ClientEnvironment) {
        self.pool = environment.makePool(1)
        self.file = file
        let restored = saved.flatMap { saved in
            SHA256Hasher(savedState: saved.state).flatMap {
                $0.byteCount == saved.offsetBytes ? $0 : nil
            }
        }
        self.state = Mutex(State(hasher: restored ?? SHA256Hasher()))
    }

    /// The state now; bytes of jobs that have not run are not in it.
    var saved: SavedHash {
        let hasher = state.withLock { $0.hasher }
        return SavedHash(offsetBytes: hasher.byteCount, state: hasher.savedState)
    }

    /// Goes on over a chunk that is in memory, and returns when it has, so that no chunk is held
    /// longer than it is needed for. When the hash is behind, it returns at once, and the chunk is
    /// read from the file in its turn.
    func advance(over chunk: ChunkBuffer, at start: Int64) async throws {
        let isNext = state.withLock { state in
            (start..<start + chunk.byteCount).contains(state.hasher.byteCount)
        }
        guard isNext else { return follow(upTo: start + chunk.byteCount) }
        try await pool.run { [self] in update(with: chunk, at: start) }
    }

    /// Goes on over bytes that are in the file.
    func follow(upTo end: Int64) {
        _ = pool.start { [self] in read(upTo: end) }
    }

    /// Hashes the rest of a file of this size and gives the digest.
    ///
    /// - Throws: the `FileError` of a failed read.
    func digest(ofSize size: Int64) async throws -> SHA256Digest {
        try await pool.run { [self] in
            read(upTo: size)
            let (failure, hasher) = state.withLock { ($0.failure, $0.hasher) }
            if let failure { throw failure }
            guard hasher.byteCount == size else {
                throw HashInterrupted(byteCount: hasher.byteCount)
            }
            return hasher.digest()
        }
    }

    /// Ends waiting jobs early. What was hashed stays in ``saved``.
    func stop() { state.withLock { $0.isStopped = true } }

    private func read(upTo end: Int64) {
        let buffer = buffers.take()
        defer { buffers.give(buffer) }
        while true {
            // Only this thread writes the hasher, so a copy can be worked on outside the lock.
            let (hasher, isOver) = state.withLock {
                ($0.hasher, $0.isStopped || $0.failure != nil)
            }
            guard !isOver, hasher.byteCount < end else { return }
            var next = hasher
            do {
                buffer.removeAll()
                let limit = Int(min(Int64(buffer.capacity), end - hasher.byteCount))
                try buffer.fillFree(limit: limit) { (free) throws(FileError) -> Int in
                    try file.read(into: free, at: hasher.byteCount)
                }
                guard buffer.count > 0 else { return }
                next.update(buffer.bytes)
                let advanced = next
                state.withLock { $0.hasher = advanced }
            } catch {
                state.withLock { $0.failure = error }
            }
        }
    }

    private func update(with chunk: ChunkBuffer, at start: Int64) {
        let (hasher, isOver) = state.withLock { ($0.hasher, $0.isStopped || $0.failure != nil) }
        let skipped = hasher.byteCount - start
        guard !isOver, (0..<chunk.byteCount).contains(skipped) else { return }
        var next = hasher
        chunk.withBytes { bytes in
            next.update(UnsafeRawBufferPointer(rebasing: bytes[Int(skipped)...]))
        }
        let advanced = next
        state.withLock { $0.hasher = advanced }
    }
}

/// The hash did not reach the end of the file: it was stopped, or the file is shorter than known.
struct HashInterrupted: Error {
    let byteCount: Int64
}
