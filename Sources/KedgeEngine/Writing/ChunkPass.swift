internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// The end of a pass over one chunk's bytes.
enum PassEnd {
    /// The chunk is full; the body may continue.
    case filled
    /// The body ended before the chunk was full.
    case bodyEnded
    /// The body broke off, or the store refused a write.
    case interrupted(any Error)
}

/// Writes the bytes of one chunk in place while they arrive, and hashes them on the way.
///
/// One piece of work on the pool hashes and writes a buffer. The next buffer is hashed while this
/// one is written, and another one fills. When the disk is behind, no more of the body is read
/// (backpressure). ``verified`` counts only bytes whose writes, and all before them, succeeded.
struct ChunkPass {
    /// Number of buffers that are hashed or written at a time.
    private static let maxWriteCount = 2
    /// Granule of uncached writes.
    private static let blockByteCount = Int64(UncachedWriter.blockByteCount)

    /// Offset of the chunk's first byte.
    let start: Int64
    /// Offset after the last byte the pass may write.
    let end: Int64
    let staging: any StagingArea
    let context: EngineContext
    /// The hashes up to the last written byte.
    private var hashes: ChunkHashes
    /// The file's hash before the chunk, once it is computed with this chunk.
    private var fileHashBefore: SHA256Hasher?
    /// The chunk's step in the file's hash; nil if the hash is not computed with this chunk.
    private let fileHashStep: FileHashStep?
    /// Whether the file's hash up to the chunk was available once.
    private var hasBegunStep = false
    /// Time spent reading the chunk from the body.
    private var age = Duration.zero
    /// Records written bytes at intervals; nil when no byte may count before the end.
    private let checkpoints: Checkpoints?
    /// The writer whose received bytes are counted; nil when no other writer waits for this pass.
    private let writer: ActiveWriter?
    private var pace: CopyBatchSize
    /// Writes under way, in the order of their bytes.
    private var writes: [BufferWrite] = []

    /// - Parameter fileHashStep: The chunk's step in the file's hash; only for a chunk written from
    ///   its start.
    init(
        chunk: ByteRange, resuming partial: PartialRecord?, staging: any StagingArea,
        context: EngineContext, fileHashStep: FileHashStep? = nil, appendHash: AppendHash? = nil,
        checkpoints: Checkpoints? = nil, writer: ActiveWriter? = nil
    ) throws {
        start = chunk.start
        end = chunk.end
        self.staging = staging
        self.context = context
        self.fileHashStep = fileHashStep
        self.checkpoints = checkpoints
        self.writer = writer
        pace = CopyBatchSize(context.configuration)
        hashes = ChunkHashes(chunk: SHA256Hasher(), append: appendHash)
        guard let partial else { return }
        guard
            let resumed = SHA256Hasher(savedState: partial.hashState, byteCount: partial.byteCount)
        else {
            throw EngineError(.internalError, cause: "the saved hash of a partial chunk is damaged")
        }
        hashes.chunk = resumed
    }

    /// The hash of the chunk up to the last written byte.
    var verified: SHA256Hasher { hashes.chunk }

    /// The file's hash after the chunk, if it was computed with this chunk.
    private var fileHash: SHA256Hasher? { hashes.file }

    /// The file's hash before and after the chunk, if it was computed with this chunk.
    var hashStep: (before: SHA256Hasher, after: SHA256Hasher)? {
        guard let before = fileHashBefore, let after = fileHash else { return nil }
        return (before, after)
    }

    /// The checksums of the append's whole body, across chunks.
    var appendHash: AppendHash? { hashes.append }

    /// Offset after the last written byte.
    var offset: Int64 { start + verified.byteCount }

    /// Reads from the body until the chunk is full or the body ends. Does not throw: written bytes
    /// count in any case.
    mutating func run(_ reader: any ByteReader) async -> PassEnd {
        // Ends with this function, after a checkpoint under way: two tasks must never write one
        // row.
        let checkpoints = checkpoints
        async let _ = checkpoints?.run()
        return await writeAll(reader)
    }

    private mutating func writeAll(_ reader: any ByteReader) async -> PassEnd {
        var next = offset
        var outcome: PassEnd = .filled
        reading: while next < end {
            let buffer = context.buffers.take(for: pace.byteCount)
            var failure: (any Error)?
            var hasMore = true
            // Up to a block boundary, after which whole blocks can be written.
            let excess = Int(next % Self.blockByteCount)
            let step = pace.byteCount > excess ? pace.byteCount - excess : pace.byteCount
            let limit = Int(min(end - next, Int64(step)))
            let elapsed = await context.timer.measure {
                do {
                    hasMore = try await reader.fill(buffer, limit: limit)
                } catch {
                    failure = error
                }
            }
            pace.adapt(to: elapsed)
            age += elapsed
            let count = buffer.count
            writer?.countReceived(count)
            if count == 0 {
                context.buffers.give(buffer)
            } else {
                do {
                    try await startWriting(buffer, at: next)
                } catch {
                    context.buffers.give(buffer)
                    outcome = .interrupted(error)
                    break reading
                }
            }
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
            try await finishWrites()
        } catch {
            return .interrupted(error)
        }
        return outcome
    }

    /// Waits until at most this many writes are under way.
    ///
    /// - Throws: The error of a write. All are over then, and ``hashes`` covers those before it.
    private mutating func finishWrites(leaving count: Int = 0) async throws {
        var failure: (any Error)?
        while writes.count > (failure == nil ? count : 0) {
            let write = writes.removeFirst()
            do {
                hashes = try await write.written.value
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
    }

    /// Starts hashing and writing a buffer, which returns to the pool of buffers afterwards. The
    /// task is always awaited in ``finishWrites(leaving:)``. It is not cancelled, because the end
    /// of a write that has begun must be known.
    ///
    /// - Throws: The error of an earlier write. The buffer is the caller's then.
    private mutating func startWriting(_ buffer: IOBuffer, at offset: Int64) async throws {
        try await finishWrites(leaving: Self.maxWriteCount - 1)
        try await beginHashStep(first: buffer.count)
        let before = try await writes.last?.hashed.value() ?? hashes
        let (previous, hashed) = (writes.last?.written, PendingResult<ChunkHashes>())
        let written = Task { [context, staging, checkpoints, fileHashStep] in
            let result = await Result {
                // Without the file's hash, the bytes are read back for it, from the page cache if
                // that is soon.
                try await staging.write(buffer, at: offset, isCached: before.file == nil) {
                    var after = before
                    after.update(buffer.bytes)
                    if after.file != nil { fileHashStep?.noteHashed(after.chunk.byteCount) }
                    hashed.complete(with: .success(after))
                }
            }
            context.buffers.give(buffer)
            // Ends the wait for the hash if the write did not begin.
            if case .failure(let error) = result { hashed.complete(with: .failure(error)) }
            try result.get()
            // Bytes count only after all before them.
            _ = try await previous?.value
            let after = try await hashed.value()
            await checkpoints?.wrote(after.chunk)
            return after
        }
        writes.append(BufferWrite(hashed: hashed, written: written))
    }

    /// Begins the chunk's step if the file's hash up to the chunk is available.
    ///
    /// - Parameter byteCount: Number of bytes that come next.
    private mutating func beginHashStep(first byteCount: Int) async throws {
        guard let fileHashStep, !hasBegunStep else { return }
        let isFirst = writes.isEmpty && verified.byteCount == 0
        let hasher = await fileHashStep.makeHasher(first: isFirst ? byteCount : nil, age: age)
        guard let hasher else { return }
        // Earlier bytes of the chunk are read for the file's hash.
        try await finishWrites()
        await join(hasher)
    }

    /// Computes the file's hash with this chunk from here on, after catching up with its earlier
    /// bytes.
    private mutating func join(_ fileHash: SHA256Hasher) async {
        hasBegunStep = true
        do {
            guard let caughtUp = try await caughtUp(fileHash) else { return }
            hashes.file = caughtUp
            fileHashBefore = fileHash
        } catch {
            // Bytes that cannot be read now are read back when the chunk is committed, or fail
            // then.
            return
        }
    }

    /// Returns the file's hash after those bytes of the chunk that were hashed without it; nil when
    /// they were damaged since. The chunk is then read back once it is committed.
    private func caughtUp(_ fileHash: SHA256Hasher) async throws -> SHA256Hasher? {
        guard verified.byteCount > 0 else { return fileHash }
        context.readBackBytes.add(verified.byteCount)
        let (file, chunk) = try await context.hash(
            file: fileHash, chunk: SHA256Hasher(), upTo: offset, reading: staging.read)
        return chunk.digest() == verified.digest() ? file : nil
    }
}

/// A buffer that is hashed and written.
private struct BufferWrite {
    /// The hashes after the buffer.
    let hashed: PendingResult<ChunkHashes>
    /// These hashes, once the buffer and all before it are written.
    let written: Task<ChunkHashes, any Error>
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
