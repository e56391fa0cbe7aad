internal import KedgeLocks
internal import KedgeModel

/// What a writer holds while it writes: one chunk, or the end of the contiguous bytes.
enum WriterSlot: Hashable, Sendable {
    case chunk(Int)
    case append
    /// No bytes: somebody reads the area, under a name of their own. Whoever gives the area up stops them
    /// first, as they do writers.
    case reading(SessionID)
}

/// Why a writer was told to stop.
enum InterruptReason: Sendable {
    /// A newer request wants the same bytes: newest wins, because the older one may hang.
    case replaced
    /// The process is ending.
    case draining
    /// It was slow, and others wait for its place.
    case crowded
    /// The session was canceled or forgotten.
    case sessionClosed

    var error: EngineError {
        switch self {
        case .replaced: EngineError(.writerReplaced)
        case .draining: EngineError(.unavailable, "The service is stopping.")
        case .crowded: .crowded
        case .sessionClosed: EngineError(.sessionClosed)
        }
    }
}

/// One stream of bytes that is being written, so that others can stop it and wait for its end.
final class ActiveWriter: Sendable {
    private struct State {
        var stop: (@Sendable () -> Void)?
        var reason: InterruptReason?
        var isFinished = false
        var byteCount: Int64 = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())
    /// The stream that this one stands for in one slot; nil for a stream of its own.
    private let whole: ActiveWriter?

    /// - Parameter whole: The stream that this one is part of: its bytes count, and it stops with this one.
    init(partOf whole: ActiveWriter? = nil) {
        self.whole = whole
    }

    /// Why the writer was told to stop; nil when it was not.
    var interruption: InterruptReason? { state.withLock { $0.reason } }

    /// Bytes that have come so far.
    var byteCount: Int64 { whole?.byteCount ?? state.withLock { $0.byteCount } }

    /// More bytes have come.
    func came(_ byteCount: Int) {
        state.withLock { $0.byteCount &+= Int64(byteCount) }
    }

    /// Sets what stops the stream; called at once when the writer was interrupted before.
    func attach(_ stop: @escaping @Sendable () -> Void) {
        let isInterrupted = state.withLock { state in
            state.stop = stop
            return state.reason != nil
        }
        if isInterrupted { stop() }
    }

    /// Stops the stream. What it received stays as a partial; the first reason counts.
    func interrupt(_ reason: InterruptReason) {
        let stop: (@Sendable () -> Void)? = state.withLock { state in
            guard !state.isFinished else { return nil }
            if state.reason == nil { state.reason = reason }
            return state.stop
        }
        stop?()
    }

    /// Called once by the writer when its last byte is saved or given up.
    func finish() {
        let waiting = state.withLock { state in
            state.isFinished = true
            state.stop = nil
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when the writer has finished. A stopped stream ends as soon as the disk calls under
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
