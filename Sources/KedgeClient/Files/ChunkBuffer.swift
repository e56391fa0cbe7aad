internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel
internal import KedgeTransport

/// Bytes of one chunk in memory, shared by the request that sends them and the whole-file hash.
///
/// The last reference returns the memory to its pool. An explicit return could let another chunk
/// overwrite it while a cancelled request still reads it.
final class ChunkBuffer: Sendable {
    private let buffer: IOBuffer
    private let pool: BufferPool

    /// - Parameter buffer: Filled buffer, not modified any more.
    init(_ buffer: IOBuffer, from pool: BufferPool) {
        self.buffer = buffer
        self.pool = pool
    }

    deinit { pool.give(buffer) }

    var byteCount: Int64 { Int64(buffer.count) }

    /// SHA-256 of all bytes. Takes milliseconds; compute it on a pool.
    var digest: SHA256Digest {
        var hasher = SHA256Hasher()
        hasher.update(buffer.bytes)
        return hasher.digest()
    }

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(buffer.bytes)
    }
}

/// Request body from a part of a chunk in memory.
struct BufferedBody: TransportBodySource {
    let buffer: ChunkBuffer
    /// First byte to send, counted from the start of the chunk.
    let start: Int64
    let byteCount: Int64

    func read(into target: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        buffer.withBytes { bytes in
            let rest = bytes[Int(start + offset)..<Int(start + byteCount)].prefix(target.count)
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest))
            return rest.count
        }
    }
}

/// Request body from a part of a chunk, read from the file while it is sent.
struct FileRangeBody: TransportBodySource {
    let file: any OpenFile
    /// First byte to send, counted from the start of the file.
    let start: Int64
    let byteCount: Int64

    func read(into target: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        let limit = Int(min(Int64(target.count), byteCount - offset))
        let count = try file.read(
            into: UnsafeMutableRawBufferPointer(rebasing: target[..<limit]), at: start + offset)
        guard count > 0 else { throw RunInterruption.sourceChanged(nil) }
        return count
    }
}
