internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// The bytes of one chunk in memory, shared by the request that sends them and the whole-file hash.
///
/// The memory goes back to its pool when the last of them lets go (R125): giving it back by hand could
/// hand it to another chunk while a cancelled request still reads it.
final class ChunkBuffer: Sendable {
    private let buffer: IOBuffer
    private let pool: BufferPool

    /// - Parameter buffer: Filled; nobody writes to it any more.
    init(_ buffer: IOBuffer, from pool: BufferPool) {
        self.buffer = buffer
        self.pool = pool
    }

    deinit { pool.give(buffer) }

    var byteCount: Int64 { Int64(buffer.count) }

    /// The SHA-256 of all bytes; takes milliseconds, and belongs on a pool.
    var digest: SHA256Digest {
        var hasher = SHA256Hasher()
        hasher.update(buffer.bytes)
        return hasher.digest()
    }

    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(buffer.bytes)
    }
}

/// A part of a chunk in memory as the body of a request.
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

/// A part of a chunk as the body of a request, read from the file while it is sent (R124).
struct FileBody: TransportBodySource {
    let file: any OpenFile
    /// First byte to send, counted from the start of the file.
    let start: Int64
    let byteCount: Int64

    func read(into target: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        let limit = Int(min(Int64(target.count), byteCount - offset))
        let count = try file.read(
            into: UnsafeMutableRawBufferPointer(rebasing: target[..<limit]), at: start + offset)
        guard count > 0 else { throw SourceChanged(current: nil) }
        return count
    }
}

/// The file may be another one than the record describes: only its time of change differs. What was read
/// of it has to be compared before more is sent.
struct SourceTouched: Error {
    /// What it is now.
    let current: SourceIdentity
}

/// The file is not the one that the record describes.
struct SourceChanged: Error {
    /// What it is now; nil when it was noticed in the middle of a read.
    let current: SourceIdentity?
}
