internal import KedgeLocks
package import KedgeModel

/// The slot of a writer: one chunk, or the end of the contiguous bytes.
package enum WriterSlot: Hashable, Sendable {
    case chunk(Int)
    case append
    /// A reader of the staging area, with an id of its own. It is stopped like a writer before the
    /// area closes.
    case reading(SessionID)
}

/// The reason to stop a writer.
package enum InterruptReason: Sendable {
    /// A newer request wants the same bytes: newest wins, because the older one may hang.
    case replaced
    /// The process is ending.
    case draining
    /// The body was slow, and another one needs its place.
    case crowded
    /// The session was canceled or forgotten.
    case sessionClosed
    /// An earlier chunk of the same append could not be committed.
    case commitFailed

    var error: EngineError {
        switch self {
        case .replaced: EngineError(.writerReplaced)
        case .draining: EngineError(.unavailable, "The service is stopping.")
        case .crowded: .crowded
        case .sessionClosed: EngineError(.sessionClosed)
        case .commitFailed: EngineError(.unavailable)
        }
    }
}

/// A stream of bytes being written, which other tasks can stop and await.
package final class ActiveWriter: Sendable {
    private struct State {
        var stop: (@Sendable () -> Void)?
        var reason: InterruptReason?
        var isFinished = false
        var byteCount: Int64 = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())
    /// The stream that this writer represents in one slot; nil for a stream of its own.
    private let whole: ActiveWriter?

    /// - Parameter whole: The stream that this writer is a part of; its received bytes count.
    package init(partOf whole: ActiveWriter? = nil) {
        self.whole = whole
    }

    /// The reason for which the writer was stopped; nil if it was not.
    package var interruption: InterruptReason? { state.withLock { $0.reason } }

    /// Number of bytes received so far.
    var byteCount: Int64 { whole?.byteCount ?? state.withLock { $0.byteCount } }

    /// Counts received bytes.
    package func countReceived(_ byteCount: Int) {
        state.withLock { $0.byteCount &+= Int64(byteCount) }
    }

    /// Sets the closure that stops the stream. Called at once if the writer was interrupted before.
    func attach(_ stop: @escaping @Sendable () -> Void) {
        let isInterrupted = state.withLock { state in
            state.stop = stop
            return state.reason != nil
        }
        if isInterrupted { stop() }
    }

    /// Stops the stream. Received bytes stay as a partial. The first reason counts.
    func interrupt(_ reason: InterruptReason) {
        let stop: (@Sendable () -> Void)? = state.withLock { state in
            guard !state.isFinished else { return nil }
            if state.reason == nil { state.reason = reason }
            return state.stop
        }
        stop?()
    }

    /// Marks the writer as finished. Called once, after its last byte was saved or discarded.
    func finish() {
        let waiting = state.withLock { state in
            state.isFinished = true
            state.stop = nil
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits until the writer has finished. A stopped stream ends as soon as the disk calls under
    /// way return.
    func finished() async {
        await withCheckedContinuation { continuation in
            let isFinished = state.withLock { state in
                if !state.isFinished { state.waiting.append(continuation) }
                return state.isFinished
            }
            if isFinished { continuation.resume() }
        }
    }
}
