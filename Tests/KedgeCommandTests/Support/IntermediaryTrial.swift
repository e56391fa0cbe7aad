import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Uploads and downloads a file through an intermediary and checks the outcomes.
struct IntermediaryTrial: Sendable {
    private let fixture: CommandEnvironment
    private let source: SampleFile
    private let server: Server
    private let folder: String

    private init() async throws {
        fixture = try CommandEnvironment()
        source = try fixture.sample(mebibytes: Torture.mebibytes, plus: 333)
        server = try await fixture.serve()
        folder = fixture.path("inbox")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
    }

    /// Uploads a file, then downloads it, each through its own proxy.
    static func run(_ interference: Interference) async throws {
        let trial = try await IntermediaryTrial()
        let id = try await trial.upload(interference.rule, interference.upload)
        try await trial.download(id, interference.rule, interference.download)
    }

    private func upload(_ rule: MessageRule, _ outcome: OriginFault.Outcome) async throws -> String
    {
        let proxy = try MessageProxy(upstreamPort: server.port, rule)
        let command = [
            "upload", source.path, "--server", proxy.url, "--json", "--chunk-size", "1048576",
        ]
        let finished = try await run(command, proxy, outcome)
        try finished.expectCompleted(source)
        #expect(proxy.affectedCount > 0, "the rule applied to no request")
        try [server].expectTakenOnce(source)
        return try #require(try finished.result.remoteFileId)
    }

    private func download(
        _ id: String, _ rule: MessageRule, _ outcome: OriginFault.Outcome
    ) async throws {
        let proxy = try MessageProxy(upstreamPort: server.port, rule)
        let copy = "\(folder)/copy.bin"
        let watcher = DestinationWatcher(copy, digest: source.digest)
        let command = ["download", id, "-o", copy, "--server", proxy.url, "--json"]
        let finished = try await run(command, proxy, outcome)
        try finished.expectCompleted(source)
        #expect(proxy.affectedCount > 0, "the rule applied to no request")
        #expect(try await watcher.stop().wrongSights == [])
        #expect(fixture.names(in: folder) == ["copy.bin"])
    }

    /// Runs a command until it succeeds, after the proxy has reformed if necessary.
    private func run(
        _ command: [String], _ proxy: MessageProxy, _ outcome: OriginFault.Outcome
    ) async throws -> Finished {
        let client = try fixture.start(command)
        switch outcome {
        case .completes:
            return try await fixture.finish(client, within: Torture.limit)
        case .fails(let code):
            let failed = try await fixture.finish(client, within: Torture.limit)
            #expect(failed.termination == .exited(code.facts.exitStatus), "\(failed.output)")
            #expect(try failed.result.errorCode == code.rawValue)
            proxy.reform()
            let finished = try await fixture.run(command, within: Torture.limit)
            #expect(try finished.result.transferId == failed.result.transferId)
            return finished
        case .recovers(let code), .persists(let code):
            try await eventually("it says \(code) and goes on", within: Torture.limit) {
                guard client.isRunning else { throw TestFailure("it is over: \(client.output)") }
                return client.output.contains("\"\(code.rawValue)\"")
            }
            #expect(client.isRunning, "\(client.output)")
            #expect(fixture.names(in: folder).filter { $0 == "copy.bin" } == [])
            proxy.reform()
            return try await fixture.finish(client, within: Torture.limit)
        }
    }
}
