internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// `kedge doctor`
struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Checks that this machine and the server are ready for transfers.")
    @OptionGroup var options: ClientOptions

    func run() async throws {
        let client = try await options.makeClient()
        say("transfer records", "ready")
        var worst = ExitStatus.success
        do {
            try await client.remote.checkReadiness()
            say("server", "ready")
        } catch let error as TransferError {
            say("server", error.description)
            worst = error.code.facts.exitStatus
        }
        let waiting = try await reporting { try await client.transfers() }
            .filter { !$0.state.isFinal }
        say("unfinished transfers", "\(waiting.count)")
        try await reporting { try await client.close() }
        if worst != ExitStatus.success { throw CommandFailure(nil, exitStatus: worst) }
    }

    private struct Finding: Encodable {
        var version = 1
        var type = "finding"
        var subject: String
        var result: String
    }

    private func say(_ subject: String, _ result: String) {
        StandardOutput.write(
            options.json
                ? JSONLine.encode(Finding(subject: subject, result: result))
                : "\(subject): \(printable(result))\n")
    }
}
