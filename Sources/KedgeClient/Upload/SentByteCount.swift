internal import Synchronization

/// Bytes of one request's body that were passed to the connection. Set by the transport's thread.
final class SentByteCount: Sendable {
    private let value = Atomic<Int64>(0)

    var count: Int64 { value.load(ordering: .relaxed) }

    func set(_ count: Int64) { value.store(count, ordering: .relaxed) }
}
