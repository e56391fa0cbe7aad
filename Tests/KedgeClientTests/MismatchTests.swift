import HTTPTypes
import KedgeClient
import KedgeHash
import KedgeLocks
import KedgeModel
import Testing

/// R120: a diagnosis has the chunks, both digests, and the server's answer.
@Suite(.timeLimit(.minutes(1)))
struct MismatchTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)
    private let other = SHA256Hasher.digest(of: [1, 2, 3])

    init() throws { fixture = try TransferEnvironment() }

    private func upload(_ client: TransferClient) async throws -> TransferDiagnosis {
        let path = try fixture.write("source.bin", bytes)
        let id = try await client.enqueueUpload(path: path)
        _ = try await client.run(id)
        return try await client.diagnose(id)
    }

    private func download(
        _ client: TransferClient, _ file: FileID
    ) async throws -> TransferDiagnosis {
        let id = try await client.enqueueDownload(.file(file), to: fixture.path("out.bin"))
        _ = try await client.run(id)
        return try await client.diagnose(id)
    }

    /// Makes the server report that it received other bytes.
    private func refuse(_ code: ErrorCode, count: Int, at suffix: String) {
        let other = other
        let refusal = Reply(problem: code) { $0.actualSha256 = other }
        fixture.plan(.answer(refusal), count: count) { $0.path.hasSuffix(suffix) }
    }

    private var chunkSix: SHA256Digest {
        SHA256Hasher.digest(of: Array(bytes[393_216..<458_752]))
    }

    @Test func `a diagnosis has the chunk that arrived damaged at the server`() async throws {
        refuse(.chunkHashMismatch, count: 2, at: "/chunks/6")
        let diagnosis = try await upload(try await fixture.client())
        #expect(diagnosis.state == .completed)
        #expect(
            diagnosis.mismatches == [
                DigestMismatch(
                    chunk: 6, expectedSha256: chunkSix, actualSha256: other, count: 2)
            ])
    }

    @Test func `a diagnosis has the file whose digest differs on the server`() async throws {
        refuse(.integrityMismatch, count: 9, at: "/finalize")
        let diagnosis = try await upload(try await fixture.client())
        #expect(diagnosis.errorCode == .integrityMismatch)
        #expect(diagnosis.lastServerStatus == 422)
        #expect(diagnosis.lastRequestId == "request-7")
        #expect(
            diagnosis.mismatches == [
                DigestMismatch(
                    chunk: nil, expectedSha256: SHA256Hasher.digest(of: bytes),
                    actualSha256: other, count: 2)
            ])
    }

    @Test func `a diagnosis has the downloaded chunk that arrived damaged`() async throws {
        let file = fixture.addFile(bytes)
        fixture.plan(.rewrite { $0.body[0] ^= 1 }) { $0.fields[.range] == "bytes=393216-458751" }
        let diagnosis = try await download(try await fixture.client(), file)
        #expect(diagnosis.state == .completed)
        var damaged = Array(bytes[393_216..<458_752])
        damaged[0] ^= 1
        #expect(
            diagnosis.mismatches == [
                DigestMismatch(
                    chunk: 6, expectedSha256: chunkSix,
                    actualSha256: SHA256Hasher.digest(of: damaged))
            ])
    }

    @Test func `a diagnosis has the downloaded file whose digest differs`() async throws {
        let file = fixture.addFile(bytes)
        fixture.server.state.withLock { $0.offersChunkDigests = false }
        fixture.plan(.rewrite { $0.body[500] ^= 1 }) { $0.fields[.range] == "bytes=0-65535" }
        let diagnosis = try await download(try await fixture.client(), file)
        #expect(diagnosis.state == .completed)
        let mismatch = try #require(diagnosis.mismatches.first)
        #expect(mismatch.chunk == nil)
        #expect(mismatch.expectedSha256 == SHA256Hasher.digest(of: bytes))
        var damaged = bytes
        damaged[500] ^= 1
        #expect(mismatch.actualSha256 == SHA256Hasher.digest(of: damaged))
    }
}
