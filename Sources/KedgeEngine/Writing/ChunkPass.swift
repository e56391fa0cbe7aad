internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// How a pass over one chunk's bytes ended.
enum PassEnd {
    /// The chunk is full; the body may go on.
    case filled
    /// The body ended before the chunk was full.
    case bodyEnded
    /// The body broke off, or the store refused a write.
    case interrupted(any Error)
}

/// Writes the bytes of one chunk in place while they arrive, hashing them on the way.
///
/// While one buffer is hashed and written, the next one fills; when the disk is behind, nothing more
/// is read from the body. ``verified`` counts only bytes whose write succeeded.
struct ChunkPass {
    /// Size of a disk's block, or a multiple of it.
    private static let blockByteCount: Int64 = 4096

    /// Offset of the chunk's first byte.
    let start: Int64
    /// Offset after the last byte the pass may write.
    let end: Int64
    let staging: any StagingArea
    let parts: EngineParts
    /// The hashes up to the last written byte that has been hashed; after the run, up to the last one.
    private var hashes: ChunkHashes
    /// The file's hash before the chunk, once it has its turn.
    private(set) var fileHashBefore: SHA256Hasher?
    /// Where the file's hash comes from; nil when it does not go along, or not any more.
    private var turn: HashTurn?
    /// Written, and waiting for the chunk's turn.
    private var held: [IOBuffer] = []
    /// How long the chunk has been coming.
    private var age = Duration.zero
    /// Records what is written on the way; nil when nothing may count before the end.
    private let checkpoints: Checkpoints?
    private var pace: FillPace

    /// - Parameter turn: Lets the file's hash go along; for a chunk that is written from its start.
    init(
        chunk: ByteRange, resuming partial: PartialRecord?, staging: any StagingArea,
        parts: EngineParts, turn: HashTurn? = nil, appendHash: SHA256Hasher? = nil,
        checkpoints: Checkpoints? = nil
    ) throws {
        start = chunk.start
        end = chunk.end
        self.staging = staging
        self.parts = parts
        self.turn = turn
        self.checkpoints = checkpoints
        pace = FillPace(parts.configuration)
        hashes = ChunkHashes(chunk: SHA256Hasher(), append: appendHash)
        guard let partial else { return }
        guard let resumed = SHA256Hasher(savedState: partial.hashState),
            resumed.byteCount == partial.byteCount
        else {
            throw EngineError(.internalError, cause: "the saved hash of a partial chunk is damaged")
        }
        hashes.chunk = resumed
    }

    /// The hash of the chunk up to the last written byte.
    var verified: SHA256Hasher { hashes.chunk }

    /// The file's hash after the chunk, when it went along.
    var fileHash: SHA256Hasher? { hashes.file }

    /// The hash over everything that this append carries, across chunks.
    var appendHash: SHA256Hasher? { hashes.append }

    /// Offset after the last written byte.
    var offset: Int64 { start + verified.byteCount }

    /// Reads from the body until the chunk is full or the body is over. Does not throw: whatever
    /// happens, what was written counts.
    mutating func run(_ reader: any ByteReader) async -> PassEnd {
        // Ends with this function, after the checkpoint under way: two must never write one row.
        let checkpoints = checkpoints
        async let _ = checkpoints?.run()
        let end = await writeAll(reader)
        if case .filled = end, let turn, !held.isEmpty { await join(await turn.wait()) }
        await hashHeld()
        return end
    }

    private mutating func writeAll(_ reader: any ByteReader) async -> PassEnd {
        var next = offset
        var underWay: Task<Advance, any Error>?
        var outcome: PassEnd = .filled
        reading: while next < end {
            let buffer = parts.buffers.take(for: pace.byteCount)
            var failure: (any Error)?
            var hasMore = true
            // Up to a boundary of blocks, after which whole blocks can be written.
            let excess = Int(next % Self.blockByteCount)
            let step = pace.byteCount > excess ? pace.byteCount - excess : pace.byteCount
            let limit = Int(min(end - next, Int64(step)))
            let elapsed = await parts.timer.measure {
                do {
                    hasMore = try await reader.fill(buffer, limit: limit)
                } catch {
                    failure = error
                }
            }
            pace.adapt(to: elapsed)
            age += elapsed
            let count = buffer.count
            do {
                try await settle(underWay)
                underWay = nil
                underWay = count > 0 ? await advance(over: buffer, at: next) : nil
            } catch {
                parts.buffers.give(buffer)
                return .interrupted(error)
            }
            if count == 0 { parts.buffers.give(buffer) }
            next += Int64(count)
            if let failure {
                outcome = .interrupted(failure)
                break reading
            }
            if !hasMore {
                outcome = next < end ? .bodyEnded : .filled
                break reading
            }
        }
        do {
            try await settle(underWay)
        } catch {
            return .interrupted(error)
        }
        return outcome
    }

    /// What became of a buffer.
    private enum Advance: Sendable {
        case hashed(ChunkHashes)
        /// Written; the buffer waits for the chunk's turn.
        case held(IOBuffer)
    }

    private mutating func settle(_ underWay: Task<Advance, any Error>?) async throws {
        switch try await underWay?.value {
        case .hashed(let hashes): self.hashes = hashes
        case .held(let buffer): held.append(buffer)
        case nil: break
        }
    }

    /// Starts hashing and writing a buffer side by side, or only writing it. The task is always awaited
    /// in `settle`; it is not cancelled, because a write that has begun must be known to have ended.
    private mutating func advance(
        over buffer: IOBuffer, at offset: Int64
    ) async -> Task<Advance, any Error> {
        await takeTurn()
        if await mayHold(buffer) { return hold(buffer, at: offset) }
        await hashHeld()
        let before = hashes
        return Task { [parts, staging, checkpoints] in
            let hashed = parts.pool.start {
                var after = before
                after.update(buffer.bytes)
                return after
            }
            let written = await Result { try await staging.write(buffer, at: offset) }
            // Both have ended before the buffer goes back, whatever the write came to.
            let after = try await hashed.value()
            parts.buffers.give(buffer)
            try written.get()
            await checkpoints?.wrote(after.chunk)
            return .hashed(after)
        }
    }

    /// The chunk's turn may have come.
    private mutating func takeTurn() async {
        guard let turn else { return }
        await join(turn.take())
    }

    /// Lets the file's hash go along from here on, over what was hashed without it first.
    private mutating func join(_ fileHash: SHA256Hasher?) async {
        guard let fileHash else { return }
        turn = nil
        do {
            hashes.file = try await caughtUp(fileHash)
            fileHashBefore = fileHash
        } catch {
            // What cannot be read back now is read back when the chunk is committed, or fails then.
            return
        }
    }

    /// The file's hash after the bytes of the chunk that were hashed alone.
    private func caughtUp(_ fileHash: SHA256Hasher) async throws -> SHA256Hasher {
        var hasher = fileHash
        while hasher.byteCount < offset {
            let buffer = parts.buffers.take()
            defer { parts.buffers.give(buffer) }
            let before = hasher
            try await staging.read(
                into: buffer, at: before.byteCount, byteCount: offset - before.byteCount)
            hasher = await parts.pool.compute {
                var after = before
                after.update(buffer.bytes)
                return after
            }
        }
        return hasher
    }

    /// True when the bytes can wait for the chunk's turn; then the memory for them is taken.
    private mutating func mayHold(_ buffer: IOBuffer) async -> Bool {
        // What follows bytes that were hashed cannot wait without making those before it wait, too.
        guard let turn, age < HashTurn.patience, verified.byteCount == 0 else { return false }
        if parts.heldBytes.take(buffer.capacity) { return true }
        // Meanwhile nothing is read from the body, which leaves the processor to those before it.
        await join(await turn.wait())
        return false
    }

    private func hold(_ buffer: IOBuffer, at offset: Int64) -> Task<Advance, any Error> {
        Task { [parts, staging] in
            do {
                try await staging.write(buffer, at: offset)
            } catch {
                parts.release([buffer])
                throw error
            }
            return .held(buffer)
        }
    }

    /// Hashes what was written and waited.
    private mutating func hashHeld() async {
        guard !held.isEmpty else { return }
        let (buffers, before) = (held, hashes)
        held = []
        hashes = await parts.pool.compute {
            var after = before
            for buffer in buffers { after.update(buffer.bytes) }
            return after
        }
        parts.release(buffers)
        await checkpoints?.wrote(hashes.chunk)
    }
}

extension EngineParts {
    /// Gives buffers back that were held.
    fileprivate func release(_ buffers: [IOBuffer]) {
        for buffer in buffers {
            heldBytes.give(buffer.capacity)
            self.buffers.give(buffer)
        }
    }
}

extension Result where Failure == any Error {
    init(catching body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
