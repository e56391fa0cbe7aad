import KedgeModel
import Testing

/// The command with origins that misbehave in every way: the result is the right file or none, a
/// named error, and an end in time (R91, R94, R103, R107, R136).
@Suite(.timeLimit(.minutes(2)))
struct EvilOriginTests {
    @Test(arguments: RangeMisdeed.allCases)
    func `an answer that is not the requested range is never written`(misdeed: RangeMisdeed)
        async throws
    {
        try await EvilTrial.run(misdeed.deed)
    }

    @Test(arguments: TagMisdeed.allCases)
    func `a changing, weak or malformed ETag never mixes versions`(misdeed: TagMisdeed) async throws
    {
        try await EvilTrial.run(misdeed.deed)
    }

    @Test(arguments: PartMisdeed.allCases)
    func `a range whose body differs from its head never makes a wrong file`(misdeed: PartMisdeed)
        async throws
    {
        try await EvilTrial.run(misdeed.deed)
    }

    @Test(arguments: WholeMisdeed.allCases)
    func `a whole file with wrong framing, length or digest never makes a wrong file`(
        misdeed: WholeMisdeed
    ) async throws {
        try await EvilTrial.run(misdeed.deed)
    }

    @Test(arguments: HeadMisdeed.allCases)
    func `an unusual response head is accepted, and a malformed one is an error`(
        misdeed: HeadMisdeed
    ) async throws {
        try await EvilTrial.run(misdeed.deed)
    }

    @Test(arguments: StatusMisdeed.allCases)
    func `a refusal has its own code, and only temporary ones are retried`(misdeed: StatusMisdeed)
        async throws
    {
        try await EvilTrial.run(misdeed.deed)
    }

    @Test(arguments: RedirectMisdeed.allCases)
    func `redirects are followed only where they lead to a file over HTTP`(misdeed: RedirectMisdeed)
        async throws
    {
        try await EvilTrial.run(misdeed.deed)
    }

    @Test(arguments: KedgeMisdeed.allCases)
    func `a Kedge server's metadata is checked before it counts`(misdeed: KedgeMisdeed) async throws
    {
        try await EvilTrial.run(misdeed.deed, .id)
    }
}
