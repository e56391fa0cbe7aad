internal import KedgeLocks

/// A number of bytes that only grows. Several tasks add to it.
final class ByteCounter: Sendable {
    private let count = Mutex<Int64>(0)

    var value: Int64 { count.withLock { $0 } }

    func add(_ byteCount: Int64) { count.withLock { $0 += byteCount } }
}
