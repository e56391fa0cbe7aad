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
    /// The hashes up to the last written byte.
    private var hashes: ChunkHashes
    /// The file's hash before the chunk, once it has its turn.
    private(set) var fileHashBefore: SHA256Hasher?
    /// Where the file's hash comes from; nil when it does not go along, or not any more.
    private var turn: HashTurn?
    /// How long the chunk has been coming.
    private var age = Duration.zero
    /// Records what is written on the way; nil when nothing may count before the end.
    private let checkpoints: Checkpoints?
    /// Told what comes; nil where nobody waits for the end of this pass.
    private let writer: ActiveWriter?
    private var pace: FillPace

    /// - Parameter turn: Lets the file's hash go along; for a chunk that is written from its start.
    init(
        chunk: ByteRange, resuming partial: PartialRecord?, staging: any StagingArea,
        parts: EngineParts, turn: HashTurn? = nil, appendHash: AppendHash? = nil,
        checkpoints: Checkpoints? = nil, writer: ActiveWriter? = nil
    ) throws {
        start = chunk.start
        end = chunk.end
        self.staging = staging
        self.parts = parts
        self.turn = turn
        self.checkpoints = checkpoints
        self.writer = writer
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

    /// The checksums of everything that this append carries, across chunks.
    var appendHash: AppendHash? { hashes.append }

    /// Offset after the last written byte.
    var offset: Int64 { start + verified.byteCount }

    /// Reads from the body until the chunk is full or the body is over. Does not throw: whatever
    /// happens, what was written counts.
    mutating func run(_ reader: any ByteReader) async -> PassEnd {
        // Ends with this function, after the checkpoint under way: two must never write one row.
        let checkpoints = checkpoints
        async let _ = checkpoints?.run()
        return await writeAll(reader)
    }

    private mutating func writeAll(_ reader: any ByteReader) async -> PassEnd {
        var next = offset
        var underWay: Task<ChunkHashes, any Error>?
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
            writer?.came(count)
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

    private mutating func settle(_ underWay: Task<ChunkHashes, any Error>?) async throws {
        if let hashes = try await underWay?.value { self.hashes = hashes }
    }

    /// Starts hashing and writing a buffer side by side. The task is always awaited in `settle`; it is
    /// not cancelled, because a write that has begun must be known to have ended.
    private mutating func advance(
        over buffer: IOBuffer, at offset: Int64
    ) async -> Task<ChunkHashes, any Error> {
        await takeTurn()
        let before = hashes
        return Task { [parts, staging, checkpoints] in
            let hashed = parts.pool.start {
                var after = before
                after.update(buffer.bytes)
                return after
            }
            let written = await Result {
                if before.file == nil {
                    // To be read back for the file's hash, from the page cache if it is soon.
                    try await staging.write(buffer, at: offset)
                } else {
                    try await staging.writeUncached(buffer, at: offset)
                }
            }
            // Both have ended before the buffer goes back, whatever the write came to.
            let after = try await hashed.value()
            parts.buffers.give(buffer)
            try written.get()
            await checkpoints?.wrote(after.chunk)
            return after
        }
    }

    /// The chunk's turn may have come. The first bytes of a chunk from a fast link wait for it a moment:
    /// meanwhile nothing is read from the body, which leaves the processor to the chunks before it.
    private mutating func takeTurn() async {
        guard let turn else { return }
        let mayWait = verified.byteCount == 0 && age < HashTurn.fastAge
        await join(mayWait ? await turn.wait() : turn.take())
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
