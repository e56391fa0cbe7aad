import HTTPTypes
import KedgeClient
import KedgeModel
import Testing

/// Each way to go on after a failed request for the bytes from 100,000 to 200,000 of an upload.
struct SequentialSendStateTests {
    typealias Event = SequentialSendState.Event
    typealias Action = SequentialSendState.Action

    /// Events, and the actions that the last one causes.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let events: [Event]
        let actions: [Action]

        init(_ name: String, _ events: [Event], _ actions: [Action]) {
            testDescription = name
            self.events = events
            self.actions = actions
        }
    }

    private static let range = ByteRange(start: 100_000, end: 200_000)
    private static let nothing = Event.state(offset: 100_000, isComplete: false)
    private static let some = Event.state(offset: 150_000, isComplete: false)
    private static let complete = Event.state(offset: 100_000, isComplete: true)
    private static let wait: [Action] = [.wait(isReachable: false), .requestState]
    private static let waitForAnswering: [Action] = [.wait(isReachable: true), .requestState]

    private static func failed(_ failure: RequestFailure, sent: Int64) -> Event {
        .failed(
            SequentialSendState.Failure(failure, sentByteCount: sent), range,
            acknowledged: range.start)
    }

    /// The transport reports an error.
    private static func failure(_ kind: TransportError.Kind, sent: Int64 = 0) -> Event {
        failed(RequestFailure(TransportError(kind), operation: "append"), sent: sent)
    }

    /// The server or an intermediary answers without a problem document of Kedge.
    private static func answer(_ status: Int, sent: Int64 = 0) -> Event {
        refusal(Reply(status: status), sent: sent)
    }

    /// The server answers with a problem document.
    private static func problem(_ code: ErrorCode, sent: Int64 = 0) -> Event {
        refusal(Reply(problem: code), sent: sent)
    }

    private static func refusal(_ reply: Reply, sent: Int64) -> Event {
        let head = ServerReply(
            status: reply.status, headerFields: [:], body: TransportResponseBody { nil },
            url: "https://files.example/", hasCredentials: true)
        return failed(
            RequestFailure(head, body: reply.body, operation: "append", subject: .upload),
            sent: sent)
    }

    /// The state before the first failure, with bodies of at most 100,000 bytes.
    private static func start(isSmallest: Bool = false) -> SequentialSendState {
        let smallest = isSmallest ? range.byteCount : nil
        let capabilities = ServerCapabilities(
            maxAppendSize: range.byteCount, minAppendSize: smallest)
        return SequentialSendState(bodySize: AdaptiveBodySize(capabilities: capabilities))
    }

    /// Returns the actions that the last event causes.
    private func actions(
        after events: [Event], from start: SequentialSendState = Self.start()
    ) -> [Action] {
        var state = start
        var actions: [Action] = []
        for event in events { actions = state.handle(event) }
        return actions
    }

    static let firstFailures: [Row] = [
        Row("canceled", [failure(.canceled)], [.giveUp(.canceled)]),
        Row(
            "unreadable body", [failure(.bodyUnreadable)],
            [.verifySource, .giveUp(.permanentFailure)]),
        Row("no secure connection", [failure(.tls)], [.giveUp(.permanentFailure)]),
        Row("upload not found", [answer(404)], [.giveUp(.uploadGone)]),
        Row("upload expired", [answer(410)], [.giveUp(.uploadGone)]),
        Row("session closed", [problem(.sessionClosed)], [.giveUp(.uploadGone)]),
        Row("other bytes", [problem(.integrityMismatch)], [.giveUp(.otherBytes)]),
        Row("checksum mismatch", [answer(460)], wait),
        Row("offset mismatch", [answer(409)], [.requestState]),
        Row("body refused", [answer(413)], [.requestState]),
        Row("body cut short", [answer(400, sent: 10)], [.requestState]),
        Row("forbidden", [answer(403)], [.requestState]),
        Row("offline", [failure(.offline)], wait),
        Row("dropped", [failure(.dropped, sent: 10)], [.requestState]),
        Row("stalled", [failure(.stalled, sent: 10)], [.requestState]),
        Row("outage", [answer(503)], [.requestState]),
        Row("server error", [answer(500)], wait),
        Row("locked upload", [answer(423)], wait),
    ]

    @Test(arguments: firstFailures)
    func `a first failure causes the actions of the table`(row: Row) {
        #expect(actions(after: row.events) == row.actions)
    }

    static let states: [Row] = [
        Row("waited, nothing arrived", [failure(.offline), nothing], [.goOn]),
        Row("dropped, some bytes arrived", [failure(.dropped, sent: 10), some], [.goOn]),
        Row("dropped, complete", [failure(.dropped, sent: 10), complete], [.goOn]),
        Row("dropped, nothing arrived", [failure(.dropped, sent: 10), nothing], waitForAnswering),
        Row(
            "dropped, nothing arrived, waited",
            [failure(.dropped, sent: 10), nothing, nothing], [.goOn]),
        Row("offset mismatch, more arrived", [answer(409), some], [.goOn]),
        Row("offset mismatch, nothing arrived", [answer(409), nothing], waitForAnswering),
        Row("cut short, nothing arrived", [answer(400, sent: 10), nothing], [.goOn]),
        Row("refused, arrived before", [answer(403), some], [.goOn]),
        Row("refused, complete", [answer(403), complete], [.goOn]),
        Row("refused, nothing arrived", [answer(403), nothing], [.giveUp(.permanentFailure)]),
        Row("body refused, nothing arrived", [answer(413), nothing], [.goOn]),
    ]

    @Test(arguments: states)
    func `a state after a failure causes the actions of the table`(row: Row) {
        #expect(actions(after: row.events) == row.actions)
    }

    @Test func `a refused body is halved, and a body of the smallest size ends the upload`() {
        var state = Self.start()
        _ = state.handle(Self.answer(413))
        #expect(state.bodySize.byteCount == 50_000)
        let refused = [Self.answer(413), Self.nothing]
        #expect(
            actions(after: refused, from: Self.start(isSmallest: true))
                == [.giveUp(.bodyRefused(byteCount: 100_000))])
    }

    @Test func `a broken body makes the next one smaller`() {
        var state = Self.start()
        _ = state.handle(Self.failure(.dropped, sent: 10))
        #expect(state.bodySize.byteCount == 100_000)
        _ = state.handle(Self.nothing)
        #expect(state.bodySize.byteCount == 25_000)
    }

    @Test func `the third checksum mismatch in a row has the file compared`() {
        let mismatches = [Self.answer(460), Self.nothing, Self.answer(460), Self.nothing]
        let expected: [Action] = [.verifySource, .wait(isReachable: false), .requestState]
        #expect(actions(after: mismatches + [Self.answer(460)]) == expected)
    }

    @Test func `the fourth body cut short in a row counts as a refusal`() {
        let cut = [Self.answer(400, sent: 10), Self.nothing]
        #expect(actions(after: cut + cut + cut + cut) == [.giveUp(.permanentFailure)])
    }

    @Test func `progress ends a series of failures`() {
        var state = Self.start()
        for _ in 0..<3 { _ = state.handle(Self.answer(400, sent: 10)) }
        state.recordProgress()
        _ = state.handle(Self.answer(400, sent: 10))
        let actions = state.handle(Self.nothing)
        #expect(actions == [.goOn])
    }
}
