internal import KedgeLocks
package import KedgeModel

/// Where a body comes from, and how it comes along.
package struct BodyOrigin: Sendable {
    package var address: ClientAddress
    /// Nil where nothing tells how fast bytes come; such a body is never taken for a slow one.
    package var progress: BodyProgress?

    package init(address: ClientAddress, progress: BodyProgress?) {
        self.address = address
        self.progress = progress
    }

    /// A body that nothing is known of.
    package static let unknown = BodyOrigin(address: .unknown, progress: nil)
}

/// How the body of one connection's current request comes along.
///
/// Only the time counts in which the server waits for bytes: while a disk is behind, nothing is read, and that
/// is not the client's fault.
package final class BodyProgress: Sendable {
    /// Bytes that came, and the time that the server waited for them.
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
        var isHeldBack = false
    }

    private let state = Mutex(State())

    package init() {}

    /// A request begins.
    ///
    /// - Parameter isHeldBack: The client waits for `100 Continue`: until then the server takes the
    ///   time.
    package func begin(isHeldBack: Bool = false) {
        state.withLock { $0 = State(isOpen: true, isHeldBack: isHeldBack) }
    }

    /// `100 Continue` was sent: from now on the server waits for the body.
    package func ask() {
        state.withLock { state in
            guard state.isOpen, state.isHeldBack else { return }
            state.isHeldBack = false
            state.waitingSince = .now
        }
    }

    /// The server waits for bytes from now on, if it did not before.
    package func wait() {
        state.withLock { state in
            guard state.isOpen, !state.isHeldBack, state.waitingSince == nil else { return }
            state.waitingSince = .now
        }
    }

    /// Bytes of the body came.
    package func came(_ byteCount: Int) {
        state.withLock { state in
            state.stopWaiting()
            state.isHeldBack = false
            state.measure.byteCount += Int64(byteCount)
        }
    }

    /// The body is over.
    package func end() {
        state.withLock { state in
            state.stopWaiting()
            state.isOpen = false
        }
    }

    /// What has come until now.
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
