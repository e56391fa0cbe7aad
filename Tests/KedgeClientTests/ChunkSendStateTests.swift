import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeModel
import Testing

/// Each way to go on after an event in the life of a chunk of 100,000 bytes.
struct ChunkSendStateTests {
    typealias Event = ChunkSendState.Event
    typealias Action = ChunkSendState.Action

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

    private static let chunk = ByteRange(start: 1000, end: 101_000)
    private static let digest = SHA256Hasher.digest(of: [1])
    private static let whole = Action.send(ByteRange(start: 0, end: 100_000), asksFirst: true)
    private static let probe = Action.send(ByteRange(start: 99_999, end: 100_000), asksFirst: true)
    private static let wait = Action.wait(isReachable: false)
    /// A link that breaks after some bytes of the body.
    private static let broken = failure(.dropped, sent: 10)

    private static func from(_ start: Int64, to end: Int64 = 100_000) -> Action {
        .send(ByteRange(start: start, end: end), asksFirst: true)
    }

    private static func body(_ change: (inout AdaptiveBodySize) -> Void = { _ in })
        -> AdaptiveBodySize
    {
        var size = AdaptiveBodySize(chunkSize: chunk.byteCount)
        change(&size)
        return size
    }

    /// Bodies of at most 50,000 bytes.
    private static let halves = body { _ = $0.recordRefusal(of: 100_000) }

    /// The transport reports an error.
    private static func failure(_ kind: TransportError.Kind, sent: Int64 = 0) -> Event {
        let failure = RequestFailure(TransportError(kind), operation: "put chunk")
        return .failed(ChunkSendState.Failure(failure, sentByteCount: sent))
    }

    /// An intermediary answers.
    private static func answer(_ status: Int, sent: Int64 = 0) -> Event {
        .failed(facts(Reply(status: status), sent: sent))
    }

    /// The server answers with a problem document.
    private static func problem(
        _ code: ErrorCode, expectedOffset: Int64? = nil, actual: SHA256Digest? = nil,
        sent: Int64 = 0
    ) -> Event {
        let reply = Reply(problem: code) {
            $0.expectedOffset = expectedOffset
            $0.actualSha256 = actual
        }
        return .failed(facts(reply, sent: sent))
    }

    private static func facts(_ reply: Reply, sent: Int64) -> ChunkSendState.Failure {
        let head = ServerReply(
            status: reply.status, headerFields: [:], body: TransportResponseBody { nil },
            url: "https://files.example/", hasCredentials: true)
        return ChunkSendState.Failure(
            RequestFailure(head, body: reply.body, operation: "put chunk", subject: .session),
            sentByteCount: sent)
    }

    private static func offsetMismatch(_ byteCount: Int64) -> Event {
        problem(.offsetMismatch, expectedOffset: chunk.start + byteCount)
    }

    /// Returns the actions that the last event causes in a chunk that is being sent.
    private func actions(
        after events: [Event], start: Int64 = 0, bodySize: AdaptiveBodySize = Self.body(),
        takesParts: Bool = true, isUnproven: Bool = false
    ) -> [Action] {
        var state = ChunkSendState(
            Self.chunk, start: start, bodySize: bodySize, takesParts: takesParts,
            isUnproven: isUnproven)
        var actions = state.handle(.start)
        for event in events { actions = state.handle(event) }
        return actions
    }

    @Test func `a new chunk is sent whole, and without asking first`() {
        #expect(
            actions(after: []) == [.send(ByteRange(start: 0, end: 100_000), asksFirst: false)])
    }

    @Test func `a chunk of which the server has bytes is sent from there`() {
        #expect(
            actions(after: [], start: 30_000)
                == [.send(ByteRange(start: 30_000, end: 100_000), asksFirst: false)])
    }

    @Test func `an unproven chunk is offered before its body is sent`() {
        #expect(actions(after: [], isUnproven: true) == [Self.whole])
    }

    @Test func `a stored chunk is confirmed, and its body size is adopted`() {
        let grown = Self.body { $0.recordSuccess(in: .seconds(1), byteCount: 100_000) }
        #expect(
            actions(after: [.stored(duration: .seconds(1))])
                == [.adoptBodySize(grown), .confirm(tries: 1)])
    }

    @Test func `a server that takes no parts gets the rest in one body`() {
        #expect(
            actions(after: [], start: 30_000, bodySize: Self.halves, takesParts: false)
                == [.send(ByteRange(start: 30_000, end: 100_000), asksFirst: false)])
    }

    @Test func `an accepted part is progress, and each part counts as a try`() {
        let first = Event.accepted(byteCount: 50_000, duration: .seconds(1))
        let second = ByteRange(start: 50_000, end: 100_000)
        #expect(
            actions(after: [first], bodySize: Self.halves)
                == [.noteProgress, .send(second, asksFirst: false)])
        let done = actions(after: [first, .stored(duration: .seconds(1))], bodySize: Self.halves)
        #expect(done.last == .confirm(tries: 2))
    }

    @Test func `an accepted part ends the asking before each body`() {
        let events: [Event] = [
            Self.failure(.offline), .accepted(byteCount: 50_000, duration: .seconds(1)),
        ]
        #expect(
            actions(after: events, bodySize: Self.halves).last
                == .send(ByteRange(start: 50_000, end: 100_000), asksFirst: false))
    }

    @Test func `an answer that contradicts its request counts as an arrived body and a failure`() {
        let contradicted = Event.contradicted(
            Self.facts(Reply(problem: .internalError), sent: 100_000), duration: .seconds(1))
        #expect(actions(after: [contradicted]) == [Self.wait, .requestStatus])
        let twice = Self.body {
            $0.recordSuccess(in: .seconds(1), byteCount: 100_000)
            $0.recordSuccess(in: .seconds(1), byteCount: 100_000)
        }
        let events: [Event] = [contradicted, .status(.partial(0)), .stored(duration: .seconds(1))]
        #expect(actions(after: events) == [.adoptBodySize(twice), .confirm(tries: 1)])
    }

    static let firstFailures: [Row] = [
        Row("canceled", [failure(.canceled)], [.giveUp(.canceled)]),
        Row(
            "unreadable body", [failure(.bodyUnreadable)],
            [.verifySource, .giveUp(.permanentFailure)]),
        Row("session not found", [problem(.sessionNotFound)], [.giveUp(.sessionGone)]),
        Row("session expired", [problem(.sessionExpired)], [.giveUp(.sessionGone)]),
        Row("session closed", [problem(.sessionClosed)], [.giveUp(.sessionClosed)]),
        Row("conflict", [problem(.chunkConflict)], [.verifySource, .giveUp(.otherBytes)]),
        Row("hash mismatch", [problem(.chunkHashMismatch)], [wait, whole]),
        Row(
            "hash mismatch with a digest", [problem(.chunkHashMismatch, actual: digest)],
            [.recordMismatch(actual: digest), wait, whole]),
        Row("offset mismatch", [offsetMismatch(40_000)], [.noteProgress, from(40_000)]),
        Row("offset mismatch at the start", [offsetMismatch(0)], [whole]),
        Row("offset mismatch without offset", [problem(.offsetMismatch)], [.requestStatus]),
        Row("offset before the chunk", [offsetMismatch(-1)], [.requestStatus]),
        Row("offset after the chunk", [offsetMismatch(100_000)], [.requestStatus]),
        Row(
            "range mismatch of a whole chunk", [problem(.rangeMismatch)],
            [.giveUp(.permanentFailure)]),
        Row("body refused", [answer(413)], [.adoptBodySize(halves), from(0, to: 50_000)]),
        Row("body cut short", [answer(400, sent: 10)], [probe]),
        Row("bad request", [answer(400)], [.giveUp(.permanentFailure)]),
        Row("forbidden", [answer(403)], [.giveUp(.permanentFailure)]),
        Row("no secure connection", [failure(.tls)], [.giveUp(.permanentFailure)]),
        Row("whole body sent, no answer", [failure(.dropped, sent: 100_000)], [.requestStatus]),
        Row("offline", [failure(.offline)], [wait, whole]),
        Row("dropped before the body", [failure(.dropped)], [wait, whole]),
        Row("outage before the body", [answer(503)], [wait, whole]),
        Row("busy server", [problem(.busy)], [wait, whole]),
        Row("writer replaced", [problem(.writerReplaced)], [wait, .requestStatus]),
        Row("server error", [problem(.internalError, sent: 10)], [wait, .requestStatus]),
        Row("dropped in the body", [broken], [probe]),
        Row("stalled in the body", [failure(.stalled, sent: 10)], [probe]),
        Row("outage in the body", [answer(503, sent: 10)], [probe]),
        Row("outage in the body, by the server", [problem(.unavailable, sent: 10)], [wait, probe]),
    ]

    @Test(arguments: firstFailures)
    func `a chunk's first failure causes the actions of the table`(row: Row) {
        #expect(actions(after: row.events) == row.actions)
    }

    private static let storedLastByte = body {
        $0.recordSuccess(in: .seconds(1), byteCount: 1)
    }

    static let probeResults: [Row] = [
        Row("nothing arrived", [offsetMismatch(0)], [.noteAnswer, from(0, to: 25_000)]),
        Row(
            "some bytes arrived", [offsetMismatch(40_000)],
            [.noteProgress, from(40_000, to: 56_384)]),
        Row("unnamed offset", [problem(.offsetMismatch)], [.requestStatus]),
        Row(
            "unnamed offset, nothing arrived", [problem(.offsetMismatch), .status(.partial(0))],
            [.noteAnswer, from(0, to: 25_000)]),
        Row(
            "only the last byte was missing", [.stored(duration: .seconds(1))],
            [.adoptBodySize(storedLastByte), .confirm(tries: 1)]),
        Row("dropped again", [broken], [wait, probe]),
        Row("offline", [failure(.offline)], [wait, probe]),
        Row("forbidden", [answer(403)], [wait, probe]),
        Row("hash mismatch", [problem(.chunkHashMismatch)], [wait, whole]),
        Row("session closed", [problem(.sessionClosed)], [.giveUp(.sessionClosed)]),
        Row(
            "next break without progress", [offsetMismatch(0), broken],
            [.wait(isReachable: true), probe]),
        Row("next break after progress", [offsetMismatch(40_000), broken], [probe]),
    ]

    @Test(arguments: probeResults)
    func `a probe's result causes the actions of the table`(row: Row) {
        #expect(actions(after: [Self.broken] + row.events) == row.actions)
    }

    static let statusAnswers: [Row] = [
        Row(
            "no answer, received", [failure(.dropped, sent: 100_000), .status(.received)],
            [.confirm(tries: 1)]),
        Row(
            "no answer, nothing new", [failure(.dropped, sent: 100_000), .status(.partial(0))],
            [.wait(isReachable: true), probe]),
        Row(
            "no answer, some bytes", [failure(.dropped, sent: 100_000), .status(.partial(40_000))],
            [.noteProgress, from(40_000)]),
        Row(
            "failure, received", [problem(.internalError), .status(.received)],
            [.confirm(tries: 1)]),
        Row("failure, nothing new", [problem(.internalError), .status(.partial(0))], [whole]),
        Row(
            "failure, some bytes", [problem(.internalError), .status(.partial(40_000))],
            [.noteProgress, from(40_000)]),
        Row(
            "offset, received", [problem(.offsetMismatch), .status(.received)],
            [.confirm(tries: 1)]),
        Row("offset, nothing new", [problem(.offsetMismatch), .status(.partial(0))], [whole]),
        Row(
            "offset, some bytes", [problem(.offsetMismatch), .status(.partial(40_000))],
            [.noteProgress, from(40_000)]),
    ]

    @Test(arguments: statusAnswers)
    func `a status answer causes the actions of the table`(row: Row) {
        #expect(actions(after: row.events) == row.actions)
    }

    @Test func `the third hash mismatch of a chunk checks the file`() {
        let mismatch = Self.problem(.chunkHashMismatch)
        #expect(actions(after: [mismatch, mismatch]) == [Self.wait, Self.whole])
        #expect(
            actions(after: [mismatch, mismatch, mismatch])
                == [.verifySource, Self.wait, Self.whole])
    }

    @Test func `a hash mismatch starts a resumed chunk over`() {
        #expect(
            actions(after: [Self.problem(.chunkHashMismatch)], start: 30_000)
                == [Self.wait, Self.whole])
    }

    @Test func `the third offset mismatch without progress waits`() {
        let mismatch = Self.offsetMismatch(0)
        #expect(actions(after: [mismatch, mismatch]) == [Self.whole])
        #expect(actions(after: [mismatch, mismatch, mismatch]) == [Self.wait, Self.whole])
        let events = [mismatch, mismatch, Self.offsetMismatch(10), Self.offsetMismatch(10)]
        #expect(actions(after: events) == [Self.from(10)])
    }

    @Test func `the fourth answer in a row to a body cut short is a failed probe`() {
        let answer = Self.answer(400, sent: 1)
        #expect(actions(after: [answer, answer, answer]) == [Self.probe])
        #expect(actions(after: [answer, answer, answer, answer]) == [Self.wait, Self.probe])
        let progress = Self.offsetMismatch(40_000)
        #expect(actions(after: [answer, answer, answer, progress, answer]) == [Self.probe])
    }

    @Test func `a refused part makes the server get the chunk whole`() {
        #expect(
            actions(after: [Self.problem(.rangeMismatch)], bodySize: Self.halves) == [Self.whole])
    }

    @Test func `a refused body that cannot be smaller ends the chunk`() {
        let reason = ChunkSendState.Reason.bodyRefused(byteCount: 100_000)
        #expect(actions(after: [Self.answer(413)], takesParts: false) == [.giveUp(reason)])
        let least = Self.body { while $0.recordRefusal(of: $0.byteCount) {} }
        #expect(
            actions(after: [Self.answer(413)], bodySize: least)
                == [.giveUp(.bodyRefused(byteCount: least.byteCount))])
    }

    @Test func `a refused probe stays a probe`() {
        #expect(actions(after: [Self.broken, Self.answer(413)]).last == Self.probe)
    }

    @Test func `an unproven chunk in conflict means that the file changed`() {
        #expect(
            actions(after: [Self.problem(.chunkConflict)], isUnproven: true)
                == [.verifySource, .giveUp(.sourceChanged)])
    }

    @Test func `an unproven chunk that the server has is offered again after a wait`() {
        let events: [Event] = [Self.failure(.dropped, sent: 100_000), .status(.received)]
        #expect(
            actions(after: events, isUnproven: true) == [.wait(isReachable: true), Self.whole])
    }
}
