/// What a request sends after its head. The size is always known, so it is never sent in chunks.
package enum CurlRequestBody: Sendable {
    /// Bytes that are in memory already.
    case bytes([UInt8])
    /// Bytes read piece by piece while they are sent.
    case source(any CurlRequestBodySource)

    /// How many bytes will be sent.
    package var byteCount: Int64 {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .source(let source): source.byteCount
        }
    }

    /// Copies bytes from `offset` on into `buffer`; 0 means the source ended before its size.
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
    /// How many bytes there are; it must not change while a request is under way.
    var byteCount: Int64 { get }

    /// Fills the front of `buffer` with bytes from `offset` on.
    ///
    /// It is called on the curl thread, where every other exchange of the client waits for it, so
    /// it must not block longer than a read from the page cache does. The same offset can be asked
    /// for again when libcurl repeats a request on a fresh connection.
    ///
    /// - Returns: how many bytes were read, at least one.
    /// - Throws: any error, which becomes the cause of a ``CurlError/Code/bodyReadFailed``.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int
}
