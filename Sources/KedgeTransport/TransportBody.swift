/// The body of a request; its size is always known.
public enum TransportBody: Sendable {
    /// Bytes in memory.
    case bytes([UInt8])
    /// Bytes that are read one buffer at a time while they are sent.
    case source(any TransportBodySource)

    /// Number of bytes that will be sent.
    public var byteCount: Int64 {
        switch self {
        case .bytes(let bytes): Int64(bytes.count)
        case .source(let source): source.byteCount
        }
    }
}

/// A request body that is read while it is sent, so that memory use does not grow with its size.
public protocol TransportBodySource: Sendable {
    /// Number of bytes; constant during a request.
    var byteCount: Int64 { get }
    /// Fills the buffer's front with bytes from `offset` on; returns their number, at least one.
    ///
    /// Called on a thread of the transport, on which other requests may wait meanwhile: it must not
    /// block for longer than a read from the page cache. It may request the same offset again.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int
}
