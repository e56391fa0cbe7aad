import HTTPTypes
import KedgeLocks
import KedgeTransport

/// One request and its response, shared by the caller and the curl thread.
///
/// The curl thread delivers the head, the bytes and the end. The caller waits for them, cancels or
/// discards the body. Either side may come first, and the first end wins. No call here blocks the
/// thread.
package final class Exchange: Sendable {
    /// The reader's answer to a delivery of bytes.
    enum BodyDemand {
        case more
        /// Enough is buffered: ask ``Exchange/pauseIfFull()`` before the next bytes.
        case full
        /// The rest is not wanted.
        case none
    }

    /// Largest rest of an unread response that is received to keep its connection.
    static let discardLimitByteCount = 256 * 1024

    private typealias HeadWaiter = CheckedContinuation<Result<HTTPResponse, CurlError>, Never>
    private typealias BodyWaiter = CheckedContinuation<Result<[UInt8]?, CurlError>, Never>

    private enum Phase {
        case awaitingHead
        case receiving
        case discarding(remainingByteCount: Int)
        case ended(CurlError?)
    }

    private struct State {
        var phase = Phase.awaitingHead
        var buffer = BodyBuffer()
        var headWaiter: HeadWaiter?
        var bodyWaiter: BodyWaiter?
    }

    let subject: CurlError.Subject
    package let origin: URLOrigin
    private let loop: CurlLoop
    private let state = Mutex(State())

    package init(operation: String, origin: URLOrigin, loop: CurlLoop) {
        self.subject = CurlError.Subject(
            operation: operation, host: origin.host, port: Int(origin.port))
        self.origin = origin
        self.loop = loop
    }

    func error(_ code: CurlError.Code, _ detail: String, cause: (any Error)? = nil) -> CurlError {
        CurlError(code, for: subject, detail: detail, cause: cause)
    }
}

// MARK: - The caller's side

extension Exchange {
    /// Starts the transfer of `request` and waits for the head of its response.
    func start(_ request: TransportRequest) async throws(CurlError) -> HTTPResponse {
        let result: Result<HTTPResponse, CurlError> = await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                let endedWith: CurlError? = state.withLock { state in
                    // Only a cancellation can have come first.
                    if case .ended(let error) = state.phase { return error }
                    state.headWaiter = waiter
                    return nil
                }
                if let endedWith {
                    waiter.resume(returning: .failure(endedWith))
                } else {
                    loop.post(.start(request, self))
                }
            }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }

    /// Returns the next bytes of the body, or `nil` after the last. At most one call at a time.
    func next() async throws(CurlError) -> [UInt8]? {
        let result: Result<[UInt8]?, CurlError> = await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                var mustResume = false
                let answer: Result<[UInt8]?, CurlError>? = state.withLock { state in
                    if let taken = state.buffer.takeFirst() {
                        mustResume = taken.mustResume
                        return .success(taken.chunk)
                    }
                    if case .ended(let error) = state.phase {
                        return error.map { .failure($0) } ?? .success(nil)
                    }
                    precondition(state.bodyWaiter == nil, "a response body has one reader")
                    state.bodyWaiter = waiter
                    return nil
                }
                // The loop ignores this if the transfer has ended meanwhile.
                if mustResume { loop.post(.resume(self)) }
                if let answer { waiter.resume(returning: answer) }
            }
        } onCancel: {
            cancel()
        }
        return try result.get()
    }

    /// Ends the exchange of a cancelled task: discards buffered bytes and resumes the waiting
    /// calls.
    func cancel() {
        if end(error(.cancelled, "the task was cancelled"), droppingBuffer: true) {
            loop.post(.cancel(self))
        }
    }

    /// Discards the rest of the body after its reader has released it.
    func discardBody() {
        let waiter: BodyWaiter?? = state.withLock { state in
            state.buffer.removeAll()
            guard case .receiving = state.phase else { return .none }
            state.phase = .discarding(remainingByteCount: Self.discardLimitByteCount)
            return .some(state.bodyWaiter.take())
        }
        guard let waiter else { return }
        waiter?.resume(returning: .failure(error(.cancelled, "the body was dropped")))
        loop.post(.discardBody(self))
    }
}

// MARK: - The curl thread's side

extension Exchange {
    /// Whether the exchange has ended.
    var hasEnded: Bool {
        state.withLock { state in
            if case .ended = state.phase { true } else { false }
        }
    }

    /// Delivers the final head to the caller.
    func deliver(_ head: HTTPResponse) {
        let waiter: HeadWaiter? = state.withLock { state in
            guard case .awaitingHead = state.phase else { return nil }
            state.phase = .receiving
            return state.headWaiter.take()
        }
        waiter?.resume(returning: .success(head))
    }

    /// Delivers body bytes to the caller, or counts them while an unread response is discarded.
    func deliver(_ chunk: [UInt8]) -> BodyDemand {
        var waiter: BodyWaiter?
        let appetite: BodyDemand = state.withLock { state in
            switch state.phase {
            case .receiving:
                waiter = state.bodyWaiter.take()
                if waiter == nil { state.buffer.append(chunk) }
                return state.buffer.isFull ? .full : .more
            case .discarding(let remaining):
                state.phase = .discarding(remainingByteCount: remaining - chunk.count)
                return remaining < chunk.count ? .none : .more
            case .awaitingHead, .ended:
                return .none
            }
        }
        waiter?.resume(returning: .success(chunk))
        return appetite
    }

    /// Whether the transfer must pause now. If so, the reader posts a resume when it has made room.
    func pauseIfFull() -> Bool {
        state.withLock { state in
            guard case .receiving = state.phase else { return false }
            return state.buffer.pauseIfFull()
        }
    }

    /// Ends the exchange, with or without an error, unless it has ended already.
    ///
    /// - Returns: Whether this call ended it.
    @discardableResult
    func end(_ error: CurlError?, droppingBuffer: Bool = false) -> Bool {
        var headWaiter: HeadWaiter?
        var bodyWaiter: BodyWaiter?
        let isFirst: Bool = state.withLock { state in
            if case .ended = state.phase {
                guard droppingBuffer, state.buffer.byteCount > 0 else { return false }
                // Received but unread bytes must not look like a complete body.
                state.buffer.removeAll()
                state.phase = .ended(error)
                return false
            }
            if droppingBuffer { state.buffer.removeAll() }
            state.phase = .ended(error)
            headWaiter = state.headWaiter.take()
            bodyWaiter = state.bodyWaiter.take()
            return true
        }
        headWaiter?.resume(
            returning: .failure(
                error ?? self.error(.closedEarly, "the exchange ended without a response")))
        bodyWaiter?.resume(returning: error.map { .failure($0) } ?? .success(nil))
        return isFirst
    }
}
