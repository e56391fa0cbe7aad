import KedgeModel
import Testing

/// The command and the server with an intermediary that receives complete messages, as many do. In
/// the end both sides have the right file, once, or the command reports a code (R1, R91, R107,
/// R136).
///
/// Serialized, because each test runs processes that hash and sync: several at a time would only
/// measure the machine. There are three suites, because most of their time is waiting.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct OutageTests {
    @Test(arguments: Outage.allCases)
    func `a file survives upload and download although an intermediary answers for the server`(
        outage: Outage
    ) async throws {
        try await IntermediaryTrial.run(outage.interference)
    }
}

@Suite(.serialized, .timeLimit(.minutes(10)))
struct LossTests {
    @Test(arguments: Loss.allCases)
    func `a file is stored once although answers are lost and requests repeated`(loss: Loss)
        async throws
    {
        try await IntermediaryTrial.run(loss.interference)
    }
}

@Suite(.serialized, .timeLimit(.minutes(10)))
struct RewritingTests {
    @Test(arguments: Rewriting.allCases)
    func `a file survives upload and download although messages are rewritten`(rewriting: Rewriting)
        async throws
    {
        try await IntermediaryTrial.run(rewriting.interference)
    }
}
