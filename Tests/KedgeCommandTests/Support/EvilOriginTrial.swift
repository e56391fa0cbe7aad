import Foundation
import KedgeModel
import KedgeTesting
import Testing

/// Runs the real command against an ``EvilOrigin`` and checks the outcome.
struct EvilTrial: Sendable {
    /// The way in which the command names the file.
    enum Subject: Sendable {
        case url
        /// A URL with HTTPS.
        case secureURL
        /// The id of the file on the server.
        case id
    }

    /// The time limit of every step, whatever the origin does.
    static let limit = Duration.seconds(20)

    let fixture: CommandEnvironment
    let origin: EvilOrigin
    let folder: String
    private let subject: Subject

    var copy: String { "\(folder)/copy.bin" }

    init(_ fault: OriginFault, _ subject: Subject = .url) throws {
        fixture = try CommandEnvironment()
        origin = try EvilOrigin(fault)
        self.subject = subject
        folder = fixture.path("inbox")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
    }

    /// The command that downloads the file.
    func command(to destination: String? = nil) -> [String] {
        let output = ["-o", destination ?? copy, "--json"]
        switch subject {
        case .url: return ["download", "\(origin.url)/file.bin"] + output
        case .secureURL:
            return ["download", "https://127.0.0.1:\(origin.port)/file.bin"] + output
        case .id: return ["download", EvilFile.id, "--server", origin.url] + output
        }
    }

    /// Runs the command against an origin with one fault, to its outcome.
    static func run(_ fault: OriginFault, _ subject: Subject = .url) async throws {
        try await withTurn(fault, subject) { try await $0.run(fault.outcome) }
    }

    /// Lends a trial once it is its turn.
    static func withTurn(
        _ fault: OriginFault, _ subject: Subject = .url, _ body: (EvilTrial) async throws -> Void
    ) async throws {
        await EvilOriginTurns.shared.take()
        do {
            try await body(try EvilTrial(fault, subject))
        } catch {
            await EvilOriginTurns.shared.give()
            throw error
        }
        await EvilOriginTurns.shared.give()
    }

    private func run(_ outcome: OriginFault.Outcome) async throws {
        let client = try fixture.start(command())
        switch outcome {
        case .completes:
            try expectFile(try await fixture.finish(client, within: Self.limit))
        case .fails(let code):
            let finished = try await fixture.finish(client, within: Self.limit)
            try expectFailure(finished, code)
            try await expectNothingAfterCancel(try #require(try finished.result.transferId))
        case .recovers(let code):
            _ = try await expectTries(client, code)
            origin.reform()
            try expectFile(try await fixture.finish(client, within: Self.limit))
        case .persists(let code):
            let transfer = try await expectTries(client, code)
            try await expectNothingAfterCancel(transfer)
            let finished = try await fixture.finish(client, within: Self.limit)
            #expect(try finished.result.state == "canceled")
        }
        #expect(origin.faultCount > 0, "the origin never got to do it")
    }

    /// Expects that the command succeeded and left the right file, and no other.
    func expectFile(_ finished: Finished, named name: String = "copy.bin") throws {
        #expect(finished.termination == .exited(0), "\(finished.output)\(finished.errors)")
        let result = try finished.result
        #expect(result.state == "completed")
        #expect(result.fileHashSha256 == origin.file.digest.hex)
        #expect(fixture.names(in: folder) == [name])
        #expect(try SampleFile.digest(of: "\(folder)/\(name)") == origin.file.digest)
    }

    /// Expects that the command failed with the code, and that no file has the final name.
    func expectFailure(_ finished: Finished, _ code: ErrorCode) throws {
        let result = try finished.result
        let state = code == .unauthenticated ? "paused" : "failed"
        try #require(result.state == state, "\(finished.output)")
        #expect(result.errorCode == code.rawValue, "\(finished.output)")
        #expect(finished.termination == .exited(code.facts.exitStatus))
        #expect(!FileManager.default.fileExists(atPath: copy))
        if result.bytesTransferred == 0 {
            #expect(fixture.names(in: folder) == [], "there is nothing to go on with")
        }
    }

    /// Expects that the command keeps trying and reports why.
    ///
    /// - Returns: Id of the transfer.
    func expectTries(_ client: ChildProcess, _ code: ErrorCode) async throws -> String {
        let id: String = try await eventually("it says \(code)", within: Self.limit) {
            let lines = try TransferLine.all(client.output)
            if let line = lines.last(where: { $0.errorCode == code.rawValue }) {
                return line.transferId
            }
            guard client.isRunning else {
                let end = client.poll().map { "\($0)" } ?? ""
                throw TestFailure("it is over, \(end): \(client.output)\(client.errors)")
            }
            return nil
        }
        let count = origin.requests.count
        try await eventually("it tries again", within: Self.limit) {
            origin.requests.count > count
        }
        #expect(client.isRunning)
        #expect(!FileManager.default.fileExists(atPath: copy))
        return id
    }

    /// Expects that canceling leaves nothing behind.
    func expectNothingAfterCancel(_ transfer: String) async throws {
        let canceled = try await fixture.run(["transfers", "cancel", transfer], within: Self.limit)
        #expect(canceled.termination == .exited(0), "\(canceled.errors)")
        try await eventually("nothing is left", within: Self.limit) {
            fixture.names(in: folder) == []
        }
    }
}

/// Lets a few trials run at a time: more would wait for processors, and their time limits would no
/// longer measure the client.
actor EvilOriginTurns {
    static let shared = EvilOriginTurns()

    private var freeCount = 10
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func take() async {
        if freeCount > 0 {
            freeCount -= 1
        } else {
            await withCheckedContinuation { waiting.append($0) }
        }
    }

    func give() {
        if waiting.isEmpty {
            freeCount += 1
        } else {
            waiting.removeFirst().resume()
        }
    }
}
