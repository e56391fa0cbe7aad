import KedgeModel
import KedgeTesting
import Logging
import Testing

/// Every row of the error table that has a status, over real HTTP.
@Suite(.timeLimit(.minutes(2))) struct ErrorTableTests {
    /// Codes that need tokens, links or quotas. The server of these tests has one anonymous owner.
    private static let identityCodes: Set<ErrorCode> = [
        .unauthenticated, .forbidden, .linkInvalid, .linkExpired, .quotaExceeded, .rateLimited,
        .notFound,
    ]

    static let wireCodes = ErrorCode.allCases.filter {
        $0.facts.httpStatus != nil && !identityCodes.contains($0)
    }

    /// Fails when a code joins the table without a way to provoke it.
    @Test func `every error code with a status is provoked, and no other`() {
        #expect(Set(ErrorEnvironment.provocations.keys) == Set(Self.wireCodes))
    }

    @Test(arguments: wireCodes)
    func `an error code comes with its status, and nothing acknowledged is lost`(
        code: ErrorCode
    ) async throws {
        try await ErrorEnvironment.fixture().withServer { server in
            let fixture = try await ErrorEnvironment(server)
            let answer = try await expectUnchanged(fixture.upload, on: server) {
                try await fixture.provoke(code)
            }
            try expectProblem(answer, code)
            server.fixture.disk.heal()
            for index in 0..<fixture.upload.chunkCount {
                _ = try await server.ask(fixture.upload.put(index))
            }
            let file = try await server.ask(fixture.upload.finalize())
                .decoded(FinalizeResponse.self)
            #expect(file.fileHashSha256 == fixture.upload.digest)
        }
    }

    @Test(arguments: [
        ErrorCode.requestTimeout, .busy, .unavailable, .storageFull, .tooManySessions,
    ])
    func `a temporary error has Retry-After`(code: ErrorCode) async throws {
        try await ErrorEnvironment.fixture().withServer { server in
            let fixture = try await ErrorEnvironment(server)
            let answer = try await fixture.provoke(code)
            #expect(answer.field("Retry-After").flatMap { Int($0) } ?? 0 > 0)
        }
    }

    /// The cause is in the log once, under the request's id, and nowhere else.
    @Test func `an internal error reports its cause in the log alone`() async throws {
        try await ErrorEnvironment.fixture().withServer { server in
            let fixture = try await ErrorEnvironment(server)
            let answer = try await fixture.provoke(.internalError)
            let problem = try expectProblem(answer, .internalError)
            let path = server.fixture.directory.path
            #expect(!String(decoding: answer.body, as: UTF8.self).contains(path))
            let lines = server.fixture.log.lines.filter {
                $0.metadata["request.id"]?.description == problem.requestId
            }
            #expect(lines.count == 1)
            #expect(lines.first?.level == .error)
            #expect(lines.first?.metadata["error.cause"]?.description.contains(path) == true)
        }
    }

    @Test func `problem documents have the members of their code`() async throws {
        try await ErrorEnvironment.fixture().withServer { server in
            let fixture = try await ErrorEnvironment(server)
            func provoke(_ code: ErrorCode) async throws -> ProblemDocument {
                try expectProblem(try await fixture.provoke(code), code)
            }
            let foreign = SHA256Digest(hex: ErrorEnvironment.foreignDigest)
            #expect(try await provoke(.missingChunks).missingRanges == [[1, 2]])
            #expect(try await provoke(.offsetMismatch).expectedOffset == 1400)
            #expect(try await provoke(.fileTooLarge).maxBytes == ErrorEnvironment.maxFileSize)
            let conflict = try await provoke(.chunkConflict)
            #expect(conflict.actualSha256 == foreign)
            #expect(conflict.expectedSha256 != nil && conflict.expectedSha256 != foreign)
            let mismatch = try await provoke(.integrityMismatch)
            #expect(mismatch.expectedSha256 == foreign)
            #expect(mismatch.actualSha256 != nil && mismatch.actualSha256 != foreign)
        }
    }
}
