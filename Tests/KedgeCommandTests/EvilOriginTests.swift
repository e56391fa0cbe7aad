import KedgeModel
import Testing

/// The command with origins that misbehave in every way: the result is the right file or none, a
/// named error, and an end in time (R91, R94, R103, R107, R136).
@Suite(.timeLimit(.minutes(2)))
struct EvilOriginTests {
    @Test(arguments: RangeFault.allCases)
    func `an answer that is not the requested range is never written`(kind: RangeFault)
        async throws
    {
        try await EvilTrial.run(kind.fault)
    }

    @Test(arguments: TagFault.allCases)
    func `a changing, weak or malformed ETag never mixes versions`(kind: TagFault) async throws {
        try await EvilTrial.run(kind.fault)
    }

    @Test(arguments: PartFault.allCases)
    func `a range whose body differs from its head never makes a wrong file`(kind: PartFault)
        async throws
    {
        try await EvilTrial.run(kind.fault)
    }

    @Test(arguments: WholeFault.allCases)
    func `a whole file with wrong framing, length or digest never makes a wrong file`(
        kind: WholeFault
    ) async throws {
        try await EvilTrial.run(kind.fault)
    }

    @Test(arguments: HeadFault.allCases)
    func `an unusual response head is accepted, and a malformed one is an error`(
        kind: HeadFault
    ) async throws {
        try await EvilTrial.run(kind.fault)
    }

    @Test(arguments: StatusFault.allCases)
    func `a refusal has its own code, and only temporary ones are retried`(kind: StatusFault)
        async throws
    {
        try await EvilTrial.run(kind.fault)
    }

    @Test(arguments: RedirectFault.allCases)
    func `redirects are followed only where they lead to a file over HTTP`(kind: RedirectFault)
        async throws
    {
        try await EvilTrial.run(kind.fault)
    }

    @Test(arguments: KedgeFault.allCases)
    func `a Kedge server's metadata is checked before it counts`(kind: KedgeFault) async throws {
        try await EvilTrial.run(kind.fault, .id)
    }
}
