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
    /// Offset of the chunk's first byte.
    let start: Int64
    /// Offset after the last byte the pass may write.
    let end: Int64
    let staging: any StagingArea
    let parts: EngineParts
    /// The hash of the chunk up to the last written byte.
    private(set) var verified: SHA256Hasher
    /// The whole-file hash going along, when the chunk is the next one.
    private(set) var fileHash: SHA256Hasher?
    /// A hash over everything that this append carries, across chunks.
    private(set) var appendHash: SHA256Hasher?
    /// Records what is written on the way; nil when nothing may count before the end.
    private let checkpoints: Checkpoints?
    private var pace: FillPace

    init(
        chunk: ByteRange, resuming partial: PartialRecord?, staging: any StagingArea,
        parts: EngineParts, fileHash: SHA256Hasher? = nil, appendHash: SHA256Hasher? = nil,
        checkpoints: Checkpoints? = nil
    ) throws {
        start = chunk.start
        end = chunk.end
        self.staging = staging
        self.parts = parts
        self.fileHash = fileHash
        self.appendHash = appendHash
        self.checkpoints = checkpoints
        pace = FillPace(parts.configuration)
        guard let partial else {
            verified = SHA256Hasher()
            return
        }
        guard let resumed = SHA256Hasher(savedState: partial.hashState),
            resumed.byteCount == partial.byteCount
        else {
            throw EngineError(.internalError, cause: "the saved hash of a partial chunk is damaged")
        }
        verified = resumed
    }

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
        var underWay: Task<Advance, any Error>?
        var outcome: PassEnd = .filled
        reading: while next < end {
            let buffer = parts.buffers.take()
            var failure: (any Error)?
            var hasMore = true
            let limit = Int(min(end - next, Int64(pace.byteCount)))
            let elapsed = await parts.timer.measure {
                do {
                    hasMore = try await reader.fill(buffer, limit: limit)
                } catch {
                    failure = error
                }
            }
            pace.adapt(to: elapsed)
            let count = buffer.count
            do {
                try await settle(underWay)
                underWay = nil
                underWay = count > 0 ? advance(over: buffer, at: next) : nil
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

    private struct Advance: Sendable {
        var chunk: SHA256Hasher
        var file: SHA256Hasher?
        var append: SHA256Hasher?

        mutating func update(_ bytes: UnsafeRawBufferPointer) {
            if var file {
                SHA256Hasher.update(&chunk, &file, with: bytes)
                self.file = file
            } else {
                chunk.update(bytes)
            }
            append?.update(bytes)
        }
    }

    private mutating func settle(_ underWay: Task<Advance, any Error>?) async throws {
        guard let advance = try await underWay?.value else { return }
        verified = advance.chunk
        fileHash = advance.file
        appendHash = advance.append
    }

    /// Starts hashing and writing a buffer side by side. The task is always awaited in `settle`; it is
    /// not cancelled, because a write that has begun must be known to have ended.
    private func advance(over buffer: IOBuffer, at offset: Int64) -> Task<Advance, any Error> {
        let before = Advance(chunk: verified, file: fileHash, append: appendHash)
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
            return after
        }
    }
}

extension Result where Failure == any Error {
    fileprivate init(catching body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
