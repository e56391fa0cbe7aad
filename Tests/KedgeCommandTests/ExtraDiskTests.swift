import Foundation
import KedgeModel
import Testing

/// R4: the peak disk use of a transfer beyond the file itself, shown by disks with no more space.
///
/// Bytes in unnamed files count here, too.
///
/// Serialized, because each test mounts disks in memory for a file of 128 MiB.
@Suite(
    .serialized, .timeLimit(.minutes(3)),
    .enabled(if: SmallDisk.isAvailable, "mounts: not permitted"))
struct ExtraDiskTests {
    private static let mebibytes = 128
    /// Space for records, logs and the file system itself.
    private static let slack = 6 << 20

    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    private func disk(_ name: String, copies: Int) throws -> String {
        try fixture.disk(name, byteCount: copies * Self.mebibytes << 20 + Self.slack)
    }

    /// The environment that sends everything the client may write to one disk.
    private func client(_ disk: String) -> [String: String] {
        ["HOME": disk, "XDG_STATE_HOME": "\(disk)/state", "TMPDIR": disk]
    }

    @Test func `an upload needs no disk on the client and one copy on the server`() async throws {
        let source = try fixture.sample(mebibytes: Self.mebibytes)
        _ = try disk("disk", copies: 1)
        let server = try await fixture.serve(
            data: "disk/data", ["--storage-reserve-bytes", "0"])
        let finished = try await fixture.run(
            ["upload", source.path, "--server", server.url, "--json"],
            environment: client(try disk("client", copies: 0)))
        try finished.expectCompleted(source)
    }

    @Test func `a download needs disk for one copy`() async throws {
        let source = try fixture.sample(mebibytes: Self.mebibytes)
        let server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let directory = try disk("client", copies: 1)
        let finished = try await fixture.run(
            ["download", id, "-o", "\(directory)/copy", "--server", server.url, "--json"],
            environment: client(directory))
        try finished.expectCompleted(source)
        #expect(try SampleFile.digest(of: "\(directory)/copy") == source.digest)
    }

    /// Proves that the disks above are as small as they must be.
    @Test func `a download to a disk without room for the copy fails`() async throws {
        let source = try fixture.sample(mebibytes: Self.mebibytes)
        let server = try await fixture.serve()
        let id = try await fixture.upload(source, to: server.url)
        let directory = try disk("client", copies: 0)
        let finished = try await fixture.run(
            ["download", id, "-o", "\(directory)/copy", "--server", server.url],
            environment: client(directory))
        #expect(finished.termination == .exited(ExitStatus.diskFull))
    }
}
