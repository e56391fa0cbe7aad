internal import Foundation
internal import KedgeLocks

/// A change that a ``MessageProxy`` makes to requests and answers.
package struct MessageRule: Sendable {
    /// How an answer is delivered.
    package enum Delivery: Sendable {
        case whole
        /// The connection ends without a byte of the answer, in order or with a reset.
        case lost(resetting: Bool)
        /// The connection ends in the middle of the body, or of the head when there is none.
        case cut
    }

    /// Whether a request counts for the rule.
    package var concerns: @Sendable (HTTPMessage) -> Bool = { _ in true }
    /// Whether the rule applies to the counted request of this number, from 0.
    package var isDue: @Sendable (Int) -> Bool = { _ in true }
    /// Delay of a request, and of its answer.
    package var delay = Duration.zero
    /// Number of times that the server gets the request; 0 leaves the answer to ``changesAnswer``.
    package var copyCount = 1
    /// Whether copies are sent at the same time; one of them gives the answer.
    package var copiesRace = false
    package var changesRequest: @Sendable (inout HTTPMessage) -> Void = { _ in }
    /// Changes an answer; gets its request, too.
    package var changesAnswer: @Sendable (inout HTTPMessage, HTTPMessage) -> Void = { _, _ in
    }
    package var delivery = Delivery.whole
    /// Whether the answer itself says how it ends, or leaves that out.
    package var delimitsItself = false

    package init(
        concerns: @escaping @Sendable (HTTPMessage) -> Bool = { _ in true },
        isDue: @escaping @Sendable (Int) -> Bool = { _ in true },
        delay: Duration = Duration.zero,
        copyCount: Int = 1,
        copiesRace: Bool = false,
        changesRequest: @escaping @Sendable (inout HTTPMessage) -> Void = { _ in },
        changesAnswer: @escaping @Sendable (inout HTTPMessage, HTTPMessage) -> Void = {
            _, _ in
        },
        delivery: Delivery = Delivery.whole,
        delimitsItself: Bool = false
    ) {
        self.concerns = concerns
        self.isDue = isDue
        self.delay = delay
        self.copyCount = copyCount
        self.copiesRace = copiesRace
        self.changesRequest = changesRequest
        self.changesAnswer = changesAnswer
        self.delivery = delivery
        self.delimitsItself = delimitsItself
    }
}

/// An HTTP proxy on 127.0.0.1 that reads a complete request, forwards it, reads the complete answer
/// and returns it, as many proxies do. It applies its rules and counts.
///
/// Each connection has a thread. State shared with the test is behind a lock. It is no
/// ``TCPRelay``: whole requests get other answers, or reach the server twice.
package final class MessageProxy: Sendable {
    private struct State {
        var rule: MessageRule
        var upstreamPort: UInt16
        var isStopped = false
        var concernedCount = 0
        var affectedCount = 0
    }

    private let server: ScriptedServer
    private let state: Mutex<State>

    package var url: String { server.url("") }
    /// Number of requests that a rule applied to.
    package var affectedCount: Int { state.withLock { $0.affectedCount } }

    package init(upstreamPort: UInt16, _ rule: MessageRule) throws {
        server = try ScriptedServer()
        state = Mutex(State(rule: rule, upstreamPort: upstreamPort))
        server.start { [weak self] in self?.serve($0) }
    }

    /// Removes the rules: everything passes unchanged from now on.
    package func reform() { state.withLock { $0.rule = MessageRule() } }

    /// Serves one request: the client connects anew for the next one.
    private func serve(_ connection: LoopbackConnection) {
        guard var request = connection.readHead() else { return }
        if request["Expect"] != nil {
            // A proxy that reads a complete request has to ask for its body.
            guard connection.send("HTTP/1.1 100 Continue\r\n\r\n") else { return }
            request["Expect"] = nil
        }
        guard connection.readBody(of: &request, isAnswer: false) else { return }
        let (rule, upstreamPort) = plan(for: request)
        Self.wait(rule.delay)
        request.delimitByLength()
        rule.changesRequest(&request)
        var answer = HTTPMessage("HTTP/1.1 502 Bad Gateway")
        if rule.copyCount > 0 {
            guard let passed = Self.pass(request, rule, to: upstreamPort) else { return }
            answer = passed
        }
        Self.wait(rule.delay)
        rule.changesAnswer(&answer, request)
        if !rule.delimitsItself { answer.delimitByLength() }
        Self.deliver(answer, rule.delivery, to: connection)
    }

    private func plan(for request: HTTPMessage) -> (MessageRule, UInt16) {
        state.withLock { state in
            var rule = state.rule
            if rule.concerns(request) {
                if rule.isDue(state.concernedCount) {
                    state.affectedCount += 1
                } else {
                    rule = MessageRule()
                }
                state.concernedCount += 1
            } else {
                rule = MessageRule()
            }
            return (rule, state.upstreamPort)
        }
    }

    /// Forwards a request, as many times as its rule demands.
    private static func pass(
        _ request: HTTPMessage, _ rule: MessageRule, to port: UInt16
    ) -> HTTPMessage? {
        guard rule.copiesRace else {
            var answer: HTTPMessage?
            for _ in 0..<rule.copyCount {
                answer = HTTPMessage.exchange(request, with: port)
            }
            return answer
        }
        for _ in 1..<rule.copyCount {
            Thread.detachNewThread { _ = HTTPMessage.exchange(request, with: port) }
        }
        return HTTPMessage.exchange(request, with: port)
    }

    private static func deliver(
        _ answer: HTTPMessage, _ delivery: MessageRule.Delivery, to connection: LoopbackConnection
    ) {
        switch delivery {
        case .whole:
            connection.send(answer.bytes)
        case .lost(let resetting):
            if resetting { connection.resetOnClose() }
        case .cut:
            let count = answer.head.count
            let most = answer.body.isEmpty ? count / 2 : count + answer.body.count / 2
            connection.send(Array(answer.bytes.prefix(most)))
        }
    }

    private static func wait(_ delay: Duration) {
        if delay > .zero { usleep(UInt32(delay / .microseconds(1))) }
    }
}
