/// The body of a request. Its size is always known, so it is never sent in chunks.
package enum CurlRequestBody: Sendable {
    /// Bytes in memory.
    case bytes([UInt8])
    /// Bytes read while they are sent.
    case source(any CurlRequestBodySource)

    /// The number of bytes to send.
    package var byteCount: Int64 {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .source(let source): source.byteCount
        }
    }

    /// Copies bytes from `offset` into `buffer`; 0 means that the source ended before its size.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
        switch self {
        case .bytes(let bytes):
            let start = Int(offset)
            let count = min(buffer.count, bytes.count - start)
            guard count > 0 else { return 0 }
            unsafe bytes.withUnsafeBytes { all in
                unsafe buffer.copyMemory(from: .init(rebasing: all[start..<start + count]))
            }
            return count
        case .source(let source):
            return try unsafe source.read(into: buffer, at: offset)
        }
    }
}

/// A request body that is read while it is sent, typically from a file.
package protocol CurlRequestBodySource: Sendable {
    /// The number of bytes; it must not change during a request.
    var byteCount: Int64 { get }

    /// Fills the front of `buffer` with bytes from `offset`.
    ///
    /// It is called on the curl thread, and every other exchange of the client waits meanwhile. It
    /// must not block longer than a read from the page cache. Offsets ascend within a request; a
    /// repeated request begins at 0 again.
    ///
    /// - Returns: The number of bytes read, at least one.
    /// - Throws: Any error; it becomes the cause of a ``CurlError/Code/bodyReadFailed``.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int
}
