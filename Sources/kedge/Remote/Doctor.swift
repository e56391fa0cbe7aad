internal import ArgumentParser
internal import Foundation
internal import KedgeClient
internal import KedgeHash
internal import KedgeModel

/// `kedge doctor`
struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check that this machine and the server are ready for transfers.",
        discussion: """
            Prints whether a Kedge answers at the address, its version, protocols and limits, the \
            latency, the clock difference, proxies on the way, whether it accepts the token, what \
            its owner uses, and the free space on this machine.
            """)
    @OptionGroup var options: ClientOptions

    func run() async throws {
        guard try options.link() == nil else {
            throw CommandFailure(
                "kedge: the server is a link, which permits one transfer and no check. Name the "
                    + "server, or try the link: `kedge download LINK`, or "
                    + "`kedge upload FILE --server LINK`.",
                exitStatus: ExitStatus.usage)
        }
        let client = try await options.makeClient()
        say("transfer records", "ready")
        say("SHA-256", "with \(SHA256PairPath.current.rawValue)")
        var worst = ExitStatus.success
        do {
            let report = try await client.remote.examine()
            worst = print(report, client)
            if report.trouble == nil { worst = await checkToken(client) }
        } catch let error as TransferError {
            complain(error.description)
            say("server", error.description)
            worst = error.code.facts.exitStatus
        }
        printSpace(client)
        let waiting = try await reporting { try await client.transfers() }
            .filter { !$0.state.isFinal }
        say("unfinished transfers", "\(waiting.count)")
        try await reporting { try await client.close() }
        if worst != ExitStatus.success { throw CommandFailure(nil, exitStatus: worst) }
    }

    /// Prints the server's report.
    ///
    /// - Returns: The exit status for the server's state.
    private func print(_ report: ServerReport, _ client: TransferClient) -> Int32 {
        if let trouble = report.trouble { complain("the server is not ready: \(trouble)") }
        say("address", report.address)
        say("server", report.trouble.map { "not ready: \($0)" } ?? "ready")
        say("versions", "client \(KedgeVersion.current), server \(report.version ?? "unknown")")
        if let protocols = report.protocols {
            say("protocols", protocols.map(Self.text).joined(separator: "; "))
        }
        if let limits = report.limits { say("limits", Self.text(limits)) }
        say("latency", String(format: "%.1f ms", report.latencyMilliseconds))
        say("clock difference", report.clockDifferenceSeconds.map(Self.clockText) ?? "unknown")
        let proxy = report.proxy.map { "\($0.address) (\($0.variable))" }
        say("proxy", [proxy, report.via.map { "via \($0)" }].compacted ?? "none detected")
        if let server = report.server { say("answered by", server) }
        if options.json {
            let line = ReportLine(
                report: report, freeBytes: try? client.availableBytes(at: Self.here),
                // A path that cannot be read is reported as a finding.
                freeBytesForRecords: try? client.availableBytes(at: client.recordsDirectory))
            StandardOutput.write(JSONLine.encode(line))
        }
        guard report.trouble != nil else { return ExitStatus.success }
        return (report.troubleCode ?? .unavailable).facts.exitStatus
    }

    /// Prints for whom the token acts.
    ///
    /// - Returns: The exit status: failure only if the server does not accept the token.
    private func checkToken(_ client: TransferClient) async -> Int32 {
        let isSent = client.configuration.token != nil
        do {
            guard let owner = try await client.remote.owner() else {
                say("token", isSent ? "not checked: the server is older" : "none")
                return ExitStatus.success
            }
            say("token", isSent ? "accepted" : "none, and the server requires none")
            show(owner)
        } catch {
            let refusal = error as? TransferError
            guard let refusal, refusal.code.facts.exitStatus == ExitStatus.denied else {
                say("token", "not checked: \(error)")
                return ExitStatus.success
            }
            complain(refusal.description)
            say("token", refusal.description)
            return ExitStatus.denied
        }
        return ExitStatus.success
    }

    private func show(_ owner: AccountDescription) {
        let (limits, usage) = (owner.limits, owner.usage)
        say("owner", owner.owner)
        say("scopes", owner.scopes.joined(separator: ", "))
        say(
            "usage",
            "\(ByteText.size(usage.storedBytes)) stored, \(ByteText.size(usage.reservedBytes))"
                + " reserved" + Self.limit(limits.storedBytes.map { ByteText.size($0) })
                + "; \(usage.openSessions) unfinished"
                + Self.limit(limits.openSessions.map { "\($0)" }))
    }

    private static func limit(_ text: String?) -> String { text.map { " of \($0)" } ?? "" }

    private static var here: String { FileManager.default.currentDirectoryPath }

    private func printSpace(_ client: TransferClient) {
        let places = [
            ("free space here", Self.here), ("free space for records", client.recordsDirectory),
        ]
        for (subject, path) in places {
            do {
                say(subject, "\(ByteText.size(try client.availableBytes(at: path))) in \(path)")
            } catch {
                say(subject, "\(error)")
            }
        }
    }

    private static func text(_ spoken: SupportedProtocol) -> String {
        let versions = spoken.versions.joined(separator: ", ")
        return "\(spoken.name)\(versions.isEmpty ? "" : " " + versions) at \(spoken.path)"
    }

    private static func text(_ limits: SessionLimits) -> String {
        "files up to \(ByteText.size(limits.maxFileSize)), chunks of"
            + " \(ByteText.size(limits.minChunkSize)) to \(ByteText.size(limits.maxChunkSize)),"
            + " \(limits.maxConcurrentChunks) at a time"
    }

    /// The server reports whole seconds, so smaller differences are unknown.
    private static func clockText(_ seconds: Double) -> String {
        guard abs(seconds) >= 1 else { return "less than a second" }
        let side = seconds > 0 ? "ahead of" : "behind"
        return String(format: "the server is %.0f s \(side) this machine", abs(seconds))
    }

    private struct Finding: Encodable {
        var version = 1
        var type = "finding"
        var subject: String
        var result: String
    }

    private struct ReportLine: Encodable {
        var version = 1
        var type = "server"
        var clientVersion = KedgeVersion.current
        var report: ServerReport
        var freeBytes: Int64?
        var freeBytesForRecords: Int64?
    }

    /// Writes an error that the report would have; for a quiet command, which has no report.
    private func complain(_ message: String) {
        guard options.quiet, !options.json else { return }
        StandardError.write("kedge: \(printable(message))\n")
    }

    private func say(_ subject: String, _ result: String) {
        guard !options.quiet || options.json else { return }
        StandardOutput.write(
            options.json
                ? JSONLine.encode(Finding(subject: subject, result: result))
                : "\(subject): \(printable(result))\n")
    }
}

extension [String?] {
    /// The texts that are not nil, on one line; nil if there are none.
    fileprivate var compacted: String? {
        let texts = compactMap { $0 }
        return texts.isEmpty ? nil : texts.joined(separator: ", ")
    }
}
