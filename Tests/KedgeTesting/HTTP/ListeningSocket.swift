internal import Glibc
internal import KedgeLocks

/// A listening socket on 127.0.0.1 that its accepting thread closes, and others only shut down.
/// After the close its number may be another socket's, so nothing uses it any more.
final class ListeningSocket: Sendable {
    private enum State { case bound, listening, closed }

    let number: Int32
    let port: UInt16
    private let state = Mutex(State.bound)

    /// Binds a free port. Connections are refused until ``listen()``.
    init() throws { (number, port) = try LoopbackSocket.bound() }

    func listen() {
        state.withLock { state in
            let result = Glibc.listen(number, 64)
            precondition(state == .bound && result == 0, "a listener starts once")
            state = .listening
        }
    }

    /// Makes the accepting thread end; without one, closes the socket.
    func stop() {
        state.withLock { state in
            switch state {
            case .bound:
                Glibc.close(number)
                state = .closed
            case .listening: shutdown(number, Int32(SHUT_RDWR))
            case .closed: break
            }
        }
    }

    func close() {
        state.withLock { state in
            if state != .closed { Glibc.close(number) }
            state = .closed
        }
    }
}
