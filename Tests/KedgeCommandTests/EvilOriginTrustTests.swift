import Foundation
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Limits on what an origin can cause: it gets no token, places no file elsewhere, delays no end,
/// and makes the client fetch only the damaged chunk again.
@Suite(.timeLimit(.minutes(2)))
struct EvilOriginTrustTests {
    private static let token = "a-token-of-the-server"

    private static func redirecting(to target: EvilOrigin, _ outcome: OriginFault.Outcome)
        -> OriginFault
    {
        let url = "\(target.url)/there.bin"
        return OriginFault(outcome, .all) { answer, _, _ in answer.redirect(to: url) }
    }

    private static func honest() throws -> EvilOrigin {
        try EvilOrigin(OriginFault(.completes, .all) { _, _, _ in })
    }

    @Test(arguments: [EvilTrial.Subject.id, .url])
    func `a server's token does not follow a redirect to another origin`(subject: EvilTrial.Subject)
        async throws
    {
        let other = try Self.honest()
        // The user names the service of an id; the file of a URL may lie anywhere.
        let isFollowed = subject == .url
        let fault = Self.redirecting(to: other, isFollowed ? .completes : .fails(.redirected))
        try await EvilTrial.withTurn(fault, subject) { trial in
            let finished = try await trial.fixture.run(
                trial.command() + ["--server", trial.origin.url],
                environment: ["KEDGE_TOKEN": Self.token], within: EvilTrial.limit)
            let authorizations = trial.origin.requests.map { $0["authorization"] }
            #expect(Set(authorizations) == ["Bearer \(Self.token)"])
            guard !isFollowed else {
                try trial.expectFile(finished)
                #expect(other.requests.allSatisfy { $0["authorization"] == nil })
                return
            }
            try trial.expectFailure(finished, .redirected)
            #expect(try finished.result.message?.contains(other.url) == true)
            #expect(other.requests.count == 0)
        }
    }

    @Test func `a download without a server follows to another origin, and neither gets the token`()
        async throws
    {
        let other = try Self.honest()
        let fault = Self.redirecting(to: other, .completes)
        try await EvilTrial.withTurn(fault) { trial in
            let finished = try await trial.fixture.run(
                trial.command(), environment: ["KEDGE_TOKEN": Self.token], within: EvilTrial.limit)
            try trial.expectFile(finished)
            let requests = trial.origin.requests + other.requests
            #expect(other.requests.count > 0)
            #expect(requests.allSatisfy { $0["authorization"] == nil })
        }
    }

    /// Only the last component of a name counts (R130).
    @Test(
        arguments: [
            ("../../escape", "escape"), ("/tmp/escape", "escape"), ("..", "file"), ("/", "file"),
            ("..\\\\..\\\\escape", ".._.._escape"), ("a\\u0000b", "a_b"), ("", "file"),
        ])
    func `a file name from the server never leaves the folder`(given: String, taken: String)
        async throws
    {
        let fault = OriginFault(.completes, .all) { answer, request, file in
            answer["Content-Disposition"] = "attachment; filename=\"\(given)\""
            if request.path.hasSuffix("/meta") {
                answer.become(200, type: "application/json", file.meta(name: given))
            }
        }
        try await EvilTrial.withTurn(fault.sized(1000), .id) { trial in
            let finished = try await trial.fixture.run(
                trial.command(to: "\(trial.folder)/"), within: EvilTrial.limit)
            try trial.expectFile(finished, named: taken)
        }
    }

    @Test(arguments: ["../../escape", "/tmp/escape", "other.bin"])
    func `Content-Disposition does not name the file of a URL`(given: String) async throws {
        let fault = OriginFault(.completes, .all) { answer, _, _ in
            answer["Content-Disposition"] = "attachment; filename=\"\(given)\""
        }
        try await EvilTrial.withTurn(fault.sized(1000)) { trial in
            let finished = try await trial.fixture.run(
                trial.command(to: "\(trial.folder)/"), within: EvilTrial.limit)
            try trial.expectFile(finished, named: "file.bin")
        }
    }

    /// Ways in which an origin wastes the client's time.
    enum Delay: String, OriginFaultKind {
        case retryInYears = "429 with a Retry-After of thirty years"
        case retryAtFarDate = "503 with a Retry-After in the year 9999"
        case retryAtHugeNumber = "503 with a Retry-After that no integer holds"
        case silence = "silence after the head"
        case silenceForHead = "silence in place of a head"
        case slowBody = "a byte of the body every other second"
        case slowHead = "a byte of the head every other second"

        var fault: OriginFault {
            switch self {
            case .retryInYears: refusal(429, "1000000000")
            case .retryAtFarDate: refusal(503, "Fri, 31 Dec 9999 23:59:59 GMT")
            case .retryAtHugeNumber: refusal(503, "99999999999999999999")
            case .silence:
                OriginFault(.completes, .parts) { answer, _, _ in answer.body = [.silence] }
            case .silenceForHead:
                OriginFault(.completes, .parts) { answer, _, _ in
                    answer.becomeRaw([])
                    answer.body = [.silence]
                }
            case .slowBody:
                OriginFault(.completes, .parts) { answer, _, _ in
                    answer.body = Self.slowly(answer.content.prefix(30))
                }
            case .slowHead:
                OriginFault(.completes, .parts) { answer, _, _ in
                    let head = answer.head
                    answer.becomeRaw([])
                    answer.body = Self.slowly(head[...])
                }
            }
        }

        private func refusal(_ status: Int, _ after: String) -> OriginFault {
            OriginFault(.completes, .parts) { answer, _, _ in
                answer.become(status)
                answer["Retry-After"] = after
            }
        }

        private static func slowly(_ bytes: ArraySlice<UInt8>) -> [EvilAnswer.Step] {
            bytes.indices.flatMap { index in
                [.bytes(bytes[index...index]), .pause(milliseconds: 2000)]
            }
        }
    }

    /// Neither a Retry-After nor a slow or silent origin holds the command (R1).
    @Test(arguments: Delay.allCases)
    func `a download that an origin delays stops on a signal and resumes later`(delay: Delay)
        async throws
    {
        try await EvilTrial.withTurn(delay.fault) { trial in
            let client = try trial.fixture.start(trial.command())
            try await eventually("it waits", within: EvilTrial.limit) {
                trial.origin.faultCount > 0
            }
            client.signal(SIGINT)
            let stopped = try await trial.fixture.finish(client, within: .seconds(10))
            #expect(stopped.termination == .exited(ExitStatus.interrupted))
            #expect(!FileManager.default.fileExists(atPath: trial.copy))
            trial.origin.reform()
            try trial.expectFile(
                try await trial.fixture.run(trial.command(), within: EvilTrial.limit))
        }
    }

    // R16, R93, R95.
    @Test func `only the damaged chunk of a file is fetched again, also by the next run`()
        async throws
    {
        let fault = KedgeFault.damagedChunk.fault
        try await EvilTrial.withTurn(fault, .id) { trial in
            let failed = try await trial.fixture.run(trial.command(), within: EvilTrial.limit)
            try trial.expectFailure(failed, .chunkHashMismatch)
            trial.origin.reform()
            try trial.expectFile(
                try await trial.fixture.run(trial.command(), within: EvilTrial.limit))
            let asked = trial.origin.requests.compactMap(\.range)
            let size = EvilFile.chunkByteCount
            let damaged = 2 * size..<3 * size
            #expect(asked.filter { $0 == damaged }.count == 4)
            #expect(
                asked.filter { $0 != damaged }.map(\.lowerBound).sorted()
                    == [0, 1, 3, 4, 5].map { $0 * size })
        }
    }

    // R109.
    @Test func `a file that fails verification does not replace the existing one`() async throws {
        try await EvilTrial.withTurn(KedgeFault.damagedFile.fault, .id) { trial in
            let own = try SampleFile.write(trial.copy, byteCount: 100, seed: 1)
            let finished = try await trial.fixture.run(
                trial.command() + ["--overwrite"], within: EvilTrial.limit)
            #expect(try finished.result.errorCode == "INTEGRITY_MISMATCH")
            #expect(finished.termination == .exited(ExitStatus.integrity))
            #expect(try SampleFile.digest(of: trial.copy) == own.digest)
            #expect(trial.fixture.names(in: trial.folder) == ["copy.bin"])
        }
    }

    @Test func `a captive portal in the middle of a download does not become the file`()
        async throws
    {
        let answerCount = Mutex(0)
        let fault = OriginFault(.recovers(.protocolViolation), .all) { answer, _, _ in
            let count = answerCount.withLock {
                $0 += 1
                return $0
            }
            if count > 1 { answer.becomePortal() }
        }
        try await EvilTrial.run(fault)
    }

    @Test func `a server without TLS is reported for an https address`() async throws {
        var fault = OriginFault(.fails(.tlsRefused), .all) { _, _, _ in }
        fault.greeting = Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong".utf8)
        try await EvilTrial.run(fault, .secureURL)
    }
}
