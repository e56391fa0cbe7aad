import KedgeTransport

extension TransportBody {
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
