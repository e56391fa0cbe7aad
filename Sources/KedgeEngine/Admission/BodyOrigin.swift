internal import KedgeLocks
package import KedgeModel

/// The client address of a request body and its progress.
package struct BodyOrigin: Sendable {
    package var address: ClientAddress
    /// Nil where the transfer rate is not measured; such a body never counts as slow.
    package var progress: BodyProgress?

    package init(address: ClientAddress, progress: BodyProgress?) {
        self.address = address
        self.progress = progress
    }

    /// The origin of a body without a known address or progress.
    package static let unknown = BodyOrigin(address: .unknown, progress: nil)
}

/// Measures how fast the body of one connection's current request arrives.
///
/// Counts only the time in which the server waits for bytes. While a disk is behind, the server
/// does not read, and that is not the client's fault.
package final class BodyProgress: Sendable {
    /// Received bytes, and the time that the server waited for them.
    package struct Measure: Equatable, Sendable {
        package var byteCount: Int64 = 0
        package var waited: Duration = .zero

        package init(byteCount: Int64 = 0, waited: Duration = .zero) {
            self.byteCount = byteCount
            self.waited = waited
        }
    }

    fileprivate struct State {
        var measure = Measure()
        var waitingSince: ContinuousClock.Instant?
        var isOpen = false
        var awaitsContinue = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Starts the measurement of a request.
    ///
    /// - Parameter awaitsContinue: Whether the client waits for `100 Continue`. The time before the
    ///   server sends it does not count.
    package func begin(awaitsContinue: Bool = false) {
        state.withLock { $0 = State(isOpen: true, awaitsContinue: awaitsContinue) }
    }

    /// Records that `100 Continue` was sent: the server now waits for the body.
    package func ask() {
        state.withLock { state in
            guard state.isOpen, state.awaitsContinue else { return }
            state.awaitsContinue = false
            state.waitingSince = .now
        }
    }

    /// Records that the server waits for bytes, unless it already does.
    package func wait() {
        state.withLock { state in
            guard state.isOpen, !state.awaitsContinue, state.waitingSince == nil else { return }
            state.waitingSince = .now
        }
    }

    /// Records that bytes of the body arrived.
    package func countReceived(_ byteCount: Int) {
        state.withLock { state in
            state.stopWaiting()
            state.awaitsContinue = false
            state.measure.byteCount += Int64(byteCount)
        }
    }

    /// Records the end of the body.
    package func end() {
        state.withLock { state in
            state.stopWaiting()
            state.isOpen = false
        }
    }

    /// The bytes and the waiting time so far.
    package var measure: Measure {
        state.withLock { state in
            var measure = state.measure
            if let since = state.waitingSince { measure.waited += since.duration(to: .now) }
            return measure
        }
    }
}

extension BodyProgress.State {
    fileprivate mutating func stopWaiting() {
        if let since = waitingSince { measure.waited += since.duration(to: .now) }
        waitingSince = nil
    }
}
