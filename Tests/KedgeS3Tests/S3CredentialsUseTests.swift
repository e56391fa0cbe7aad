import KedgeLocks
import KedgeS3
import KedgeTesting
import Testing

struct S3CredentialsUseTests {
    /// Provides the server's own credentials and counts how often they were refused.
    private final class Counted: CredentialsProvider {
        let refusals = Mutex(0)
        private let value: S3Credentials

        init(_ server: any ObjectStoreServer) {
            value = S3Credentials(
                accessKeyID: server.accessKey, secretAccessKey: Secret(server.secretKey))
        }

        func credentials() async throws -> S3Credentials { value }
        func invalidate(_ refused: S3Credentials) async { refusals.withLock { $0 += 1 } }
    }

    @Test(.timeLimit(.minutes(1)), arguments: ["ExpiredToken", "InvalidAccessKeyId"])
    func `refused credentials are fetched again, once`(_ code: String) async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        var fixture = try S3Environment(on: stub)
        let provider = Counted(stub)
        fixture.credentials = provider
        let store = try fixture.open()
        try await stub.fail(.putObject, times: 1, with: .status(403, code))
        var upload = SmallUpload(byteCount: 10)
        try await upload.saveAll(in: store)
        #expect(provider.refusals.withLock { $0 } == 1)
        try await stub.fail(.putObject, with: .status(403, code))
        let again = upload
        await #expect(throws: (any Error).self) {
            var again = again
            try await again.saveAll(in: store)
        }
        #expect(try await stub.state().count(.putObject) == 4)
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a wrong secret is refused, and the error does not contain it`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        var fixture = try S3Environment(on: stub)
        let secret = "not-the-secret"
        fixture.credentials = FixedCredentials(
            S3Credentials(accessKeyID: stub.accessKey, secretAccessKey: Secret(secret)))
        let store = try fixture.open()
        let error = await #expect(throws: (any Error).self) { try await store.checkHealth() }
        #expect(!String(reflecting: error).contains(secret))
        await store.close()
        await stub.stop()
    }
}
