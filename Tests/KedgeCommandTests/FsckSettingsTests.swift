import Foundation
import KedgeModel
import Testing

/// Settings of `kedge fsck` and `kedge scrub` for the stores of rows and bytes.
@Suite(.timeLimit(.minutes(3)))
struct FsckSettingsTests {
    let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    /// Leaves the data of a service that has ended.
    private func stopped() async throws {
        let server = try await fixture.serve()
        _ = try await fixture.upload(
            try fixture.sample("file.bin", mebibytes: 1, seed: 3), to: server.url)
        server.process.end()
    }

    @Test(arguments: ["fsck", "scrub"])
    func `a check without a data directory is refused`(command: String) async throws {
        let finished = try await fixture.run([command])
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect(finished.output == "")
    }

    @Test func `the data directory comes from a flag, the environment or the file`() async throws {
        try await stopped()
        let file = fixture.path("kedge.yaml")
        try "data: \"\(fixture.path("data"))\"\n".write(
            toFile: file, atomically: false, encoding: .utf8)
        let data = ["KEDGE_DATA": fixture.path("data")]
        for (arguments, environment) in [
            (["--data", fixture.path("data")], [:]), ([], data), (["--config", file], [:]),
            ([], ["KEDGE_CONFIG": file]),
        ] as [([String], [String: String])] {
            let finished = try await fixture.run(["fsck"] + arguments, environment: environment)
            #expect(finished.termination == .exited(ExitStatus.success), "\(finished.errors)")
        }
        let elsewhere = try await fixture.run(
            ["fsck", "--data", fixture.path("nothing"), "--config", file], environment: data)
        #expect(elsewhere.termination == .exited(ExitStatus.failure), "the flag decides")
    }

    /// All bytes would seem lost, and a repair would make clients send them again.
    @Test(arguments: [[], ["--repair"]])
    func `a check refuses to compare rows with the bytes of another store`(arguments: [String])
        async throws
    {
        try await stopped()
        let finished = try await fixture.run(
            ["fsck", "--data", fixture.path("data"), "--bytes", "s3://elsewhere"] + arguments)
        #expect(finished.termination == .exited(ExitStatus.usage))
        #expect(finished.output == "")
        let right = try await fixture.run(["fsck", "--data", fixture.path("data")])
        #expect(right.termination == .exited(ExitStatus.success), "\(right.errors)")
    }

    @Test(arguments: [
        ["--metadata", "mysql://there"], ["--bytes", "ftp://there"], ["--bytes", "s3://x"],
    ])
    func `wrong store addresses of a check are refused`(arguments: [String]) async throws {
        try await stopped()
        let finished = try await fixture.run(["fsck", "--data", fixture.path("data")] + arguments)
        #expect(finished.termination == .exited(ExitStatus.usage))
    }
}
