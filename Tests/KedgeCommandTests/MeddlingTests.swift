import KedgeModel
import Testing

/// The command and the server with somebody between them who takes messages whole, as many do: there is
/// the right file at last on both sides, once, or a code that says why not yet (R1, R91, R107, R136).
///
/// Serialized, because each test runs processes of its own that hash and sync: several at a time would
/// only measure the machine. Three suites, because most of that time is waiting.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct OutageTests {
    @Test(
        "a file gets there and back although others answer for the server",
        arguments: Outage.allCases)
    func outage(outage: Outage) async throws {
        try await MeddlingTrial.run(outage.interference)
    }
}

@Suite(.serialized, .timeLimit(.minutes(10)))
struct LossTests {
    @Test(
        "a file gets there and back once although answers are lost and requests doubled",
        arguments: Loss.allCases)
    func loss(loss: Loss) async throws {
        try await MeddlingTrial.run(loss.interference)
    }
}

@Suite(.serialized, .timeLimit(.minutes(10)))
struct RewritingTests {
    @Test(
        "a file gets there and back although messages are rewritten", arguments: Rewriting.allCases)
    func rewriting(rewriting: Rewriting) async throws {
        try await MeddlingTrial.run(rewriting.interference)
    }
}
