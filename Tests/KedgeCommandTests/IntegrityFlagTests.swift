import Foundation
import KedgeModel
import Testing

/// R110: a transfer whose file keeps arriving damaged offers to start from scratch.
@Suite(.timeLimit(.minutes(2)))
struct IntegrityFlagTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    @Test func `a transfer with repeated integrity failures is flagged where it is shown`()
        async throws
    {
        let content = SampleFile.bytes(300_000, seed: 3)
        let digest = Data(repeating: 1, count: 32).base64EncodedString()
        let origin = try RangeServer { head, _ in
            var answer = RangeServer.Answer.honest(content, etag: "\"one\"", head)
            answer.fields["Repr-Digest"] = "sha-256=:\(digest):"
            return answer
        }
        let command = ["download", origin.url, "-o", fixture.path("copy")]
        let failed = try await fixture.run(command + ["--json"])
        #expect(failed.termination == .exited(ExitStatus.integrity))
        let id = try #require(try failed.result.transferId)
        let shown = try TransferLine.all(
            try await fixture.run(["transfers", "show", id, "--json"]).output)
        #expect(shown.map(\.offersRetryFromScratch) == [true])
        #expect(shown.first?.integrityFailureCount ?? 0 > 1)
        let text = try await fixture.run(["transfers", "show", id])
        #expect(text.output.contains("--from-scratch"))
        let retried = try await fixture.run(["transfers", "retry", id, "--from-scratch", "--json"])
        #expect(retried.termination == .exited(ExitStatus.integrity))
    }
}
