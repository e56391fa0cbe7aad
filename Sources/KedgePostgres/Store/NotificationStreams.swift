internal import KedgeLocks

/// Streams of notifications of one kind. Each reader has its own.
final class NotificationStreams<Element: Sendable>: Sendable {
    private struct State {
        var isFinished = false
        var nextKey = 0
        var continuations: [Int: AsyncStream<Element>.Continuation] = [:]
    }

    /// Notifications that may wait for a slow reader; the oldest are discarded first.
    private let bufferLimit = 1024
    private let state = Mutex(State())

    /// Returns a stream of the notifications from now on; it ends at once after ``finish()``.
    func makeStream() -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Element.self, bufferingPolicy: .bufferingNewest(bufferLimit))
        let key: Int? = state.withLock { state in
            guard !state.isFinished else { return nil }
            state.nextKey += 1
            state.continuations[state.nextKey] = continuation
            return state.nextKey
        }
        guard let key else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.continuations.removeValue(forKey: key) }
        }
        return stream
    }

    func publish(_ element: Element) {
        for continuation in state.withLock({ Array($0.continuations.values) }) {
            continuation.yield(element)
        }
    }

    /// Ends all streams.
    func finish() {
        let continuations = state.withLock { state in
            state.isFinished = true
            return Array(state.continuations.values)
        }
        for continuation in continuations { continuation.finish() }
    }
}
