import KedgeModel
import Testing

/// The command before origins that do everything wrong: whatever they do, there is the right file or
/// none, an error with a name, and an end (R91, R94, R103, R107, R136).
@Suite(.timeLimit(.minutes(2)))
struct EvilOriginTests {
    @Test(
        "an answer to a range that is no such range is never written",
        arguments: RangeMisdeed.allCases)
    func range(misdeed: RangeMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test("ranges are held together by a strong ETag or not at all", arguments: TagMisdeed.allCases)
    func tag(misdeed: TagMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "a range whose body is not what its head says costs a try", arguments: PartMisdeed.allCases)
    func part(misdeed: PartMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "a whole file that is not what was said of it is not taken",
        arguments: WholeMisdeed.allCases)
    func whole(misdeed: WholeMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "a head that is none is a violation or a lost connection", arguments: HeadMisdeed.allCases)
    func head(misdeed: HeadMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "a refusal has its own code, and waiting is for those that pass",
        arguments: StatusMisdeed.allCases)
    func status(misdeed: StatusMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "redirects are followed where they lead to a file over HTTP",
        arguments: RedirectMisdeed.allCases)
    func redirect(misdeed: RedirectMisdeed) async throws { try await EvilTrial.run(misdeed.deed) }

    @Test(
        "what a server says about its file is checked before it counts",
        arguments: KedgeMisdeed.allCases)
    func kedge(misdeed: KedgeMisdeed) async throws { try await EvilTrial.run(misdeed.deed, .id) }
}
