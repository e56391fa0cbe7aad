import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Disks that turn read-only under the command, as file systems do when a device reports an error.
///
/// Serialized, because each test holds a loop device, and its disk must fail during a transfer.
@Suite(
    .serialized, .timeLimit(.minutes(2)),
    .enabled(if: FailingDisk.isAvailable, "mounts: no loop devices, or not permitted"))
struct FailingDiskTests {
    private let fixture: CommandEnvironment
    private let disk: FailingDisk

    init() throws {
        fixture = try CommandEnvironment()
        disk = try FailingDisk(mebibytes: 96)
        try FileManager.default.createSymbolicLink(
            atPath: fixture.path("disk"), withDestinationPath: disk.path)
    }

    // R1, R107: the disk itself fails.
    @Test func `a server whose disk turns read-only loses nothing, and continues once it is back`()
        async throws
    {
        let source = try fixture.sample(mebibytes: 24)
        let server = try await fixture.serve(data: "disk/data", ["--storage-reserve-bytes", "0"])
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 8 << 20))
        let client = try fixture.start([
            "upload", source.path, "--server", proxy.url, "--json", "--chunk-size", "1048576",
        ])
        try await eventually("some chunks are there") { server.requests.created.count >= 6 }
        // Slow enough that the upload is under way when the disk fails.
        proxy.faults = Faults(bytesPerSecond: 1 << 20)
        try await disk.fail(under: server.process)
        // The server refuses bytes that it cannot write. A commit that breaks off ends the server,
        // because only the next start can find out whether it happened.
        try await eventually("the client hears of it, or the server has ended") {
            guard client.isRunning else { throw TestFailure("it is over: \(client.output)") }
            return client.output.contains("\"UNAVAILABLE\"") || !server.process.isRunning
        }
        let refused = Set(server.requests.filter { $0.status >= 400 }.map(\.errorCode))
        if let termination = server.process.poll() {
            #expect(termination == .exited(ExitStatus.failure))
            #expect(server.process.errors.contains("the database failed"))
            #expect(refused.isSubset(of: ["UNAVAILABLE"]))
        } else {
            #expect(refused == ["UNAVAILABLE"])
        }
        let acknowledged = Set(server.requests.created.keys)
        server.process.end()
        try disk.repair()
        let next = try await fixture.serve(data: "disk/data", ["--storage-reserve-bytes", "0"])
        let session = try #require(server.requests.sessionIDs.first)
        let status = try await fixture.session(session, at: next.url)
        #expect(acknowledged.subtracting(status.receivedChunks) == [])
        proxy.upstreamPort = next.port
        proxy.faults = Faults()
        let finished = try await fixture.finish(client)
        try finished.expectCompleted(source)
        try [server, next].expectTakenOnce(source)
        try await fixture.expectServed(source, id: finished.result.remoteFileId, at: next.url)
    }

    // R107, R114.
    @Test func `a download whose disk turns read-only reports it, and resumes once it is back`()
        async throws
    {
        let source = try fixture.sample(mebibytes: 24)
        let server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 8 << 20))
        let copy = "\(disk.path)/copy.bin"
        let command = ["download", id, "-o", copy, "--server", proxy.url, "--json"]
        let client = try fixture.start(command)
        try await eventually("some bytes are there") { proxy.counts.downByteCount > 10 << 20 }
        proxy.faults = Faults(bytesPerSecond: 2 << 20)
        try await disk.fail(under: client)
        let failed = try await fixture.finish(client, within: .seconds(20))
        #expect(failed.termination == .exited(ExitStatus.usage))
        #expect(try failed.result.errorCode == "USAGE")
        #expect(failed.output.contains("is read-only"))
        #expect(!FileManager.default.fileExists(atPath: copy))
        try disk.repair()
        proxy.faults = Faults()
        let finished = try await fixture.run(command)
        try finished.expectCompleted(source)
        #expect(try finished.result.transferId == failed.result.transferId)
        #expect(try SampleFile.digest(of: copy) == source.digest)
        #expect(fixture.temporaryFile(in: disk.path) == nil)
    }
}
