import KedgeLocks
import KedgeTesting

/// An HTTP origin with a fault: it gives wrong answers, down to single bytes, until it reforms.
///
/// Each connection has a thread; a lock protects the state that they share with the test.
final class EvilOrigin: Sendable {
    private struct State {
        var isReformed = false
        var requests: [HTTPMessage] = []
        var faultCount = 0
    }

    let file: EvilFile
    private let server: ScriptedServer
    private let fault: OriginFault
    private let state = Mutex(State())

    var port: UInt16 { server.port }
    var url: String { server.url("") }
    /// All requests, in order.
    var requests: [HTTPMessage] { state.withLock { $0.requests } }
    /// The number of requests that got a wrong answer.
    var faultCount: Int { state.withLock { $0.faultCount } }

    init(_ fault: OriginFault) throws {
        self.fault = fault
        file = EvilFile(byteCount: fault.byteCount, isRanged: fault.isRanged)
        server = try ScriptedServer()
        server.start { [weak self] connection in
            let wire = EvilWire(connection: connection)
            guard self?.greet(wire) == false else { return }
            Self.serve(wire, of: self)
        }
    }

    /// Answers honestly from now on.
    func reform() { state.withLock { $0.isReformed = true } }

    /// - Returns: True when the greeting was the whole answer.
    private func greet(_ wire: EvilWire) -> Bool {
        guard !fault.greeting.isEmpty else { return false }
        state.withLock { state in
            state.requests.append(HTTPMessage(""))
            state.faultCount += 1
        }
        var greeting = EvilAnswer()
        greeting.becomeRaw(fault.greeting)
        _ = wire.send(greeting, withBody: false)
        return true
    }

    private static func serve(_ wire: EvilWire, of origin: @autoclosure () -> EvilOrigin?) {
        while let request = wire.connection.readHead(), let answer = origin()?.answer(to: request) {
            guard wire.send(answer, withBody: request.method != "HEAD") else { return }
        }
    }

    private func answer(to request: HTTPMessage) -> EvilAnswer {
        var answer = file.answer(to: request)
        let isEvil = state.withLock { state in
            state.requests.append(request)
            let isEvil = !state.isReformed && fault.targets.contains(request)
            if isEvil { state.faultCount += 1 }
            return isEvil
        }
        if isEvil { fault.harm(&answer, request, file) }
        return answer
    }
}

/// The server's end of one connection.
struct EvilWire {
    let connection: LoopbackConnection

    /// - Returns: True when the connection can take another request.
    func send(_ answer: EvilAnswer, withBody: Bool) -> Bool {
        guard connection.send(answer.head) else { return false }
        if withBody || answer.hasBodyAlways {
            for step in answer.body {
                guard perform(step) else { return false }
            }
        }
        switch answer.ending {
        case .keeps:
            return true
        case .closes:
            leave()
        case .resets:
            connection.resetOnClose()
        }
        return false
    }

    private func perform(_ step: EvilAnswer.Step) -> Bool {
        switch step {
        case .bytes(let bytes):
            return connection.send(bytes)
        case .pause(let milliseconds):
            return !isLeft(within: milliseconds)
        case .endless(let bytes):
            // Slow enough that a client that accepts everything does not fill a disk before the
            // test ends.
            while connection.send(bytes), !isLeft(within: 5) {}
            return false
        case .silence:
            _ = isLeft(within: 60_000)
            return false
        }
    }

    /// Whether the client hangs up within the time.
    private func isLeft(within milliseconds: Int32) -> Bool {
        connection.hasInput(withinMilliseconds: milliseconds)
    }

    /// Ends the answer without a reset, which would discard bytes that the client has not read yet.
    private func leave() {
        connection.finishSending()
        // Bytes that the client still sends do not matter.
        while isLeft(within: 2000), (try? connection.receive()) == true {}
    }
}
