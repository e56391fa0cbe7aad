import KedgeModel
import Testing

/// The command with origins that misbehave in every way: the result is the right file or none, a
/// named error, and an end in time (R91, R94, R103, R107, R136).
@Suite(.timeLimit(.minutes(2)))
struct EvilOriginTests {
    @Test(
        "an answer that is not the requested range is never written",
        arguments: RangeMisdeed.allCases)
    func range(misdeed: RangeMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test("a changing, weak or malformed ETag never mixes versions", arguments: TagMisdeed.allCases)
    func tag(misdeed: TagMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "a range whose body differs from its head never makes a wrong file",
        arguments: PartMisdeed.allCases)
    func part(misdeed: PartMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "a whole file with wrong framing, length or digest never makes a wrong file",
        arguments: WholeMisdeed.allCases)
    func whole(misdeed: WholeMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "an unusual response head is accepted, and a malformed one is an error",
        arguments: HeadMisdeed.allCases)
    func head(misdeed: HeadMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "a refusal has its own code, and only temporary ones are retried",
        arguments: StatusMisdeed.allCases)
    func status(misdeed: StatusMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "redirects are followed only where they lead to a file over HTTP",
        arguments: RedirectMisdeed.allCases)
    func redirect(misdeed: RedirectMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "a Kedge server's metadata is checked before it counts",
        arguments: KedgeMisdeed.allCases)
    func kedge(misdeed: KedgeMisdeed) async throws { try await EvilTrial.run(misdeed.deed, .id) }
}
