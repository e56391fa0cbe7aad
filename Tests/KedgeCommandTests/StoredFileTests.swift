import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Uploads of bytes that the server has stored for the same user.
@Suite(.timeLimit(.minutes(2)))
struct StoredFileTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private func copy(_ sample: SampleFile, _ name: String) throws -> SampleFile {
        let path = fixture.path(name)
        try FileManager.default.copyItem(atPath: sample.path, toPath: path)
        return SampleFile(path: path, byteCount: sample.byteCount, digest: sample.digest)
    }

    @Test func `a copied file is there without sending it, and --again sends it`() async throws {
        let source = try fixture.sample(mebibytes: 40, plus: 5)
        let copied = try copy(source, "copied.bin")
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port)
        let first = try await fixture.upload(source, to: proxy.url)
        let before = proxy.counts.upByteCount
        let second = try await fixture.upload(copied, to: proxy.url)
        #expect(second != first)
        #expect(proxy.counts.upByteCount - before < 16 << 10)
        try await fixture.expectServed(copied, id: second, at: server.url)
        #expect(server.requests.chunks.count == 11)
        let again = try await fixture.run([
            "upload", copied.path, "--server", proxy.url, "--json", "--again",
        ])
        try again.expectCompleted(copied)
        #expect(proxy.counts.upByteCount - before > source.byteCount)
        // The first file may go; the bytes stay for the second one.
        for id in [first, try #require(try again.result.remoteFileId)] {
            try await fixture.run(["files", "delete", id, "--server", server.url])
        }
        try await fixture.expectServed(copied, id: second, at: server.url)
    }

    @Test func `copies count as there already, in the sum and in JSON`() async throws {
        let source = try fixture.sample(mebibytes: 4)
        let copies = try [copy(source, "1.bin"), copy(source, "2.bin")].map(\.path)
        let server = try await fixture.serve()
        _ = try await fixture.upload(source, to: server.url)
        let finished = try await fixture.run(["upload", "--server", server.url] + copies)
        #expect(finished.termination == .exited(0))
        #expect(finished.errors.contains("2 files: 0 done, 2 already there; 0 B in"))
        let copied = try copy(source, "3.bin")
        let line = try await fixture.run(
            ["upload", copied.path, "--json", "--server", server.url])
        #expect(line.output.contains("\"usedStoredBytes\":true"))
    }

    @Test func `another file of the same size is sent, whatever its first bytes are`() async throws
    {
        let source = try fixture.sample(mebibytes: 24)
        let other = try fixture.sample("other.bin", mebibytes: 24, seed: 8)
        let similar = try copy(source, "similar.bin")
        let handle = try #require(FileHandle(forUpdatingAtPath: similar.path))
        try handle.seek(toOffset: UInt64(source.byteCount - 1))
        let last = try #require(try handle.read(upToCount: 1)?.first)
        try handle.seek(toOffset: UInt64(source.byteCount - 1))
        try handle.write(contentsOf: [last ^ 1])
        try handle.close()
        let server = try await fixture.serve()
        _ = try await fixture.upload(source, to: server.url)
        for path in [other.path, similar.path] {
            let finished = try await fixture.run([
                "upload", path, "--server", server.url, "--json",
            ])
            #expect(finished.termination == .exited(0), "\(finished.errors)")
            #expect(try finished.result.fileHashSha256 == SampleFile.digest(of: path).hex)
        }
        #expect(server.requests.chunks.count == 18)
    }

    @Test func `of many files of one size, each copy is there`() async throws {
        let server = try await fixture.serve()
        let folder = fixture.path("parts")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        for index in 0..<10 {
            _ = try fixture.sample("parts/\(index)", mebibytes: 1, seed: UInt64(index))
        }
        try await fixture.run(["upload", "-r", folder, "--server", server.url])
        #expect(server.requests.chunks.count == 10)
        try FileManager.default.moveItem(atPath: folder, toPath: fixture.path("renamed"))
        let finished = try await fixture.run([
            "upload", "-r", fixture.path("renamed"), "--server", server.url,
        ])
        #expect(finished.termination == .exited(0), "\(finished.errors)")
        #expect(server.requests.chunks.count == 10)
    }

    @Test func `a comparison interrupted by a kill goes on without sending a byte`() async throws {
        let source = try fixture.sample(mebibytes: 40)
        let copied = try copy(source, "copied.bin")
        let server = try await fixture.serve()
        _ = try await fixture.upload(source, to: server.url)
        // The list of digests arrives late once: the client has a session and waits for the list.
        let proxy = try MessageProxy(
            upstreamPort: server.port,
            MessageRule(
                concerns: { $0.method == "GET" && $0.path.hasSuffix("/chunks") },
                isDue: { $0 == 0 }, delay: .seconds(60)))
        let command = ["upload", copied.path, "--server", proxy.url, "--json"]
        let client = try fixture.start(command)
        try await eventually("the list is requested") { proxy.affectedCount > 0 }
        client.signal(SIGKILL)
        _ = try await client.wait()
        try await fixture.run(command).expectCompleted(copied)
        #expect(server.requests.sessionIDs.count == 2)
        #expect(server.requests.chunks.count == 10)
    }
}
