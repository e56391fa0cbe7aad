import Foundation
import KedgeLocks

/// What a ``MeddlingProxy`` does beside passing on.
struct Meddling: Sendable {
    /// What becomes of an answer at last.
    enum Delivery: Sendable {
        case whole
        /// The connection ends without a byte of it, politely or with a reset.
        case lost(resetting: Bool)
        /// The connection ends in the middle of the body, or of the head when there is none.
        case cut
    }

    /// Requests that are meddled with.
    var concerns: @Sendable (PassingMessage) -> Bool = { _ in true }
    /// Of those, which by number, from 0.
    var isDue: @Sendable (Int) -> Bool = { _ in true }
    /// How long a request waits before it goes on, and its answer.
    var delay = Duration.zero
    /// How often the server gets the request; 0 leaves the answer to ``changesAnswer``.
    var copyCount = 1
    /// Whether copies race each other; one of them gives the answer.
    var copiesRace = false
    var changesRequest: @Sendable (inout PassingMessage) -> Void = { _ in }
    /// Gets the answer and its request.
    var changesAnswer: @Sendable (inout PassingMessage, PassingMessage) -> Void = { _, _ in }
    var delivery = Delivery.whole
    /// True when the answer says itself how it ends, or that it does not say so.
    var delimitsItself = false
}

/// An HTTP proxy on 127.0.0.1 that takes a request whole, sends it on, takes the answer whole and sends
/// that back: as many do. It meddles as it is told, and counts.
///
/// One thread a connection; what they share with the test is behind a lock.
final class MeddlingProxy: Sendable {
    private struct State {
        var meddling: Meddling
        var upstreamPort: UInt16
        var isStopped = false
        var concernedCount = 0
        var meddledCount = 0
    }

    let port: UInt16
    private let listener: Int32
    private let state: Mutex<State>

    var url: String { "http://127.0.0.1:\(port)" }
    /// How often it meddled.
    var meddledCount: Int { state.withLock { $0.meddledCount } }

    init(upstreamPort: UInt16, _ meddling: Meddling) throws {
        let (listener, port) = try Loopback.bound()
        (self.listener, self.port) = (listener, port)
        state = Mutex(State(meddling: meddling, upstreamPort: upstreamPort))
        Foundation.listen(listener, 64)
        Thread.detachNewThread { [weak self] in
            while let socket = Loopback.accept(listener) {
                Thread.detachNewThread { [weak self] in
                    self?.serve(socket)
                    close(socket)
                }
            }
            close(listener)
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    /// Passes everything on from now on, as it should.
    func reform() { state.withLock { $0.meddling = Meddling() } }

    /// Serves one request: the client connects anew for the next one.
    private func serve(_ socket: Int32) {
        let reader = MessageReader(socket: socket)
        guard var request = reader.readHead() else { return }
        if request["Expect"] != nil {
            // Whoever takes a request whole has to ask for its body.
            guard Loopback.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8), to: socket) else {
                return
            }
            request["Expect"] = nil
        }
        guard reader.readBody(of: &request, isAnswer: false) else { return }
        let (meddling, upstreamPort) = plan(for: request)
        Self.wait(meddling.delay)
        request.delimitByLength()
        meddling.changesRequest(&request)
        var answer = PassingMessage("HTTP/1.1 502 Bad Gateway")
        if meddling.copyCount > 0 {
            guard let passed = Self.pass(request, meddling, to: upstreamPort) else { return }
            answer = passed
        }
        Self.wait(meddling.delay)
        meddling.changesAnswer(&answer, request)
        if !meddling.delimitsItself { answer.delimitByLength() }
        Self.deliver(answer, meddling.delivery, to: socket)
    }

    private func plan(for request: PassingMessage) -> (Meddling, UInt16) {
        state.withLock { state in
            var meddling = state.meddling
            if meddling.concerns(request) {
                if meddling.isDue(state.concernedCount) {
                    state.meddledCount += 1
                } else {
                    meddling = Meddling()
                }
                state.concernedCount += 1
            } else {
                meddling = Meddling()
            }
            return (meddling, state.upstreamPort)
        }
    }

    /// Sends a request on, as often as it is told.
    private static func pass(
        _ request: PassingMessage, _ meddling: Meddling, to port: UInt16
    ) -> PassingMessage? {
        guard meddling.copiesRace else {
            var answer: PassingMessage?
            for _ in 0..<meddling.copyCount {
                answer = PassingMessage.exchange(request, with: port)
            }
            return answer
        }
        for _ in 1..<meddling.copyCount {
            Thread.detachNewThread { _ = PassingMessage.exchange(request, with: port) }
        }
        return PassingMessage.exchange(request, with: port)
    }

    private static func deliver(
        _ answer: PassingMessage, _ delivery: Meddling.Delivery, to socket: Int32
    ) {
        switch delivery {
        case .whole:
            _ = Loopback.send(answer.bytes, to: socket)
        case .lost(let resetting):
            if resetting { Loopback.resetOnClose(socket) }
        case .cut:
            let count = answer.head.count
            let most = answer.body.isEmpty ? count / 2 : count + answer.body.count / 2
            _ = Loopback.send(Array(answer.bytes.prefix(most)), to: socket)
        }
    }

    private static func wait(_ delay: Duration) {
        if delay > .zero { usleep(UInt32(delay / .microseconds(1))) }
    }
}
