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
        var failure: (any Error)?
        var isStopped = false
    }

    private let file: any OpenFile
    private let state = Mutex(State())
    /// How chunks of a download carry the hash on while they are written.
    let turns: HashTurns
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
        turns = HashTurns(restored ?? SHA256Hasher())
    }

    /// The state now; bytes of jobs that have not run are not in it.
    var saved: SavedHash {
        let hasher = turns.hasher
        return SavedHash(offsetBytes: hasher.byteCount, state: hasher.savedState)
    }

    /// Goes on over a chunk that is in memory, and returns when it has, so that no chunk is held
    /// longer than it is needed for. When the hash is behind, the chunk is read from the file in its
    /// turn.
    ///
    /// - Returns: The chunk's own digest, computed on the way.
    func advance(over chunk: ChunkBuffer, at start: Int64) async throws -> SHA256Digest {
        // In the job: those before it may be what brings the hash to where this chunk starts.
        try await pool.run { [self] in
            defer { read(upTo: start + chunk.byteCount) }
            return update(with: chunk, at: start)
        }
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
            let hasher = turns.hasher
            if let failure = state.withLock({ $0.failure }) { throw failure }
            guard hasher.byteCount == size else {
                throw HashInterrupted(byteCount: hasher.byteCount)
            }
            return hasher.digest()
        }
    }

    /// The same for a file to upload that has this size by its record, until the task is canceled.
    ///
    /// - Throws: ``SourceChanged`` when the file is shorter; `TransferError` when it cannot be read.
    func digest(ofFile size: Int64) async throws -> SHA256Digest {
        do {
            return try await withTaskCancellationHandler {
                try await digest(ofSize: size)
            } onCancel: {
                stop()
            }
        } catch is HashInterrupted {
            try Task.checkCancellation()
            throw SourceChanged(current: nil)
        } catch {
            throw TransferError.reading(error, operation: "hash file", role: "file to upload")
        }
    }

    /// Ends waiting jobs early. What was hashed stays in ``saved``.
    func stop() { state.withLock { $0.isStopped = true } }

    private var isOver: Bool { state.withLock { $0.isStopped || $0.failure != nil } }

    private func read(upTo end: Int64) {
        let buffer = buffers.take()
        defer { buffers.give(buffer) }
        turns.beginFollowing()
        defer { turns.endFollowing() }
        // A step that starts here is about to count; whoever makes it durable comes here again.
        while !isOver, !turns.hasStepAhead, turns.hasher.byteCount < end {
            // While it follows, only this thread moves the hash.
            var hasher = turns.hasher
            do {
                buffer.removeAll()
                let limit = Int(min(Int64(buffer.capacity), end - hasher.byteCount))
                try buffer.fillFree(limit: limit) { (free) throws(FileError) -> Int in
                    try file.read(into: free, at: hasher.byteCount)
                }
                guard buffer.count > 0 else { return }
                hasher.update(buffer.bytes)
                turns.follow(hasher)
            } catch {
                state.withLock { $0.failure = error }
            }
        }
    }

    private func update(with chunk: ChunkBuffer, at start: Int64) -> SHA256Digest {
        var hasher = turns.hasher
        let skipped = hasher.byteCount - start
        guard !isOver, (0..<chunk.byteCount).contains(skipped) else { return chunk.digest }
        var own = SHA256Hasher()
        chunk.withBytes { bytes in
            own.update(UnsafeRawBufferPointer(rebasing: bytes[..<Int(skipped)]))
            SHA256Hasher.update(
                &own, &hasher, with: UnsafeRawBufferPointer(rebasing: bytes[Int(skipped)...]))
        }
        turns.follow(hasher)
        return own.digest()
    }
}

/// The hash did not reach the end of the file: it was stopped, or the file is shorter than known.
struct HashInterrupted: Error {
    let byteCount: Int64
}
