internal import KedgeClient
internal import KedgeModel
internal import Logging

/// Transfers as text for people.
enum TransferText {
    /// Digits of a shortened id: two of thousands of transfers with the same ones are unlikely, and
    /// are refused as ambiguous.
    private static let shortIDCount = 12

    /// Returns a table of transfers; empty for none.
    static func table(_ snapshots: [TransferSnapshot], isLong: Bool) -> String {
        var table = TextTable([
            ("ID", .left), ("STATE", .left), ("DONE", .right), ("SIZE", .right), ("RATE", .right),
            ("AGE", .right), ("SERVER", .left), ("NAME", .left),
        ])
        for snapshot in snapshots {
            let hint =
                snapshot.offersRetryFromScratch
                ? "  INTEGRITY: kedge transfers retry \(snapshot.id) --from-scratch" : ""
            table.add([
                isLong ? snapshot.id.text : String(snapshot.id.text.prefix(shortIDCount)),
                snapshot.state.rawValue + signInRemark(snapshot), done(snapshot),
                snapshot.totalBytes.map { ByteText.size($0) } ?? "?",
                snapshot.bytesPerSecond.map { ByteText.rate($0) } ?? "-",
                ByteText.age(snapshot.createdAt),
                isLong ? URLSecrets.hidden(in: snapshot.serverURL) : host(snapshot),
                (isLong ? snapshot.path : snapshot.name) + hint,
            ])
        }
        return table.text
    }

    /// Returns everything that a person may want to know about one transfer.
    static func details(_ snapshot: TransferSnapshot, _ diagnosis: TransferDiagnosis) -> String {
        let lines: [(String, String?)] = [
            ("transfer", snapshot.id.text),
            ("direction", snapshot.direction.rawValue),
            ("state", snapshot.state.rawValue + remark(snapshot)),
            ("message", snapshot.message),
            ("file", snapshot.path),
            ("server", URLSecrets.hidden(in: snapshot.serverURL)),
            ("protocol", snapshot.uploadProtocol?.rawValue),
            ("done", "\(done(snapshot)) of \(size(snapshot))"),
            (
                "chunks",
                diagnosis.totalChunks.map { count in
                    let size = ByteText.size(diagnosis.chunkSize)
                    return "\(diagnosis.confirmedChunks) of \(count), \(size) each"
                }
            ),
            ("rate", snapshot.bytesPerSecond.map { ByteText.rate($0) }),
            ("file id", snapshot.remoteFileID?.text),
            ("session", snapshot.sessionID?.text),
            ("sha256", snapshot.sha256?.hex),
            ("verification", snapshot.verification?.rawValue),
            ("error", snapshot.errorCode?.rawValue),
            ("next attempt", snapshot.failedAttempt?.nextAttemptAt?.description),
            ("request id", diagnosis.lastRequestId),
            ("created", snapshot.createdAt.description),
            ("changed", snapshot.updatedAt.description),
            ("replaced by", snapshot.replacedBy?.text),
            (
                "advice",
                snapshot.offersRetryFromScratch
                    ? "kedge transfers retry \(snapshot.id) --from-scratch" : nil
            ),
        ]
        return lines.compactMap { name, value in
            value.map { TerminalText.fitted(name, to: 14) + printable($0) + "\n" }
        }.joined()
    }

    private static func remark(_ snapshot: TransferSnapshot) -> String {
        snapshot.isWaiting ? " (waits to continue)" : signInRemark(snapshot)
    }

    private static func signInRemark(_ snapshot: TransferSnapshot) -> String {
        snapshot.pauseReason == .signInNeeded ? " (sign-in needed)" : ""
    }

    private static func size(_ snapshot: TransferSnapshot) -> String {
        snapshot.totalBytes.map { ByteText.size($0) } ?? "an unknown size"
    }

    private static func done(_ snapshot: TransferSnapshot) -> String {
        guard let total = snapshot.totalBytes, total > 0 else {
            return ByteText.size(snapshot.bytesTransferred)
        }
        return TransferBar.percentage(snapshot.bytesTransferred, of: total)
    }

    /// Host and port of the server.
    private static func host(_ snapshot: TransferSnapshot) -> String {
        let address = URLSecrets.hidden(in: snapshot.serverURL).split(separator: "/").dropFirst()
        let authority = address.first ?? ""
        return authority.split(separator: "@").last.map(String.init) ?? ""
    }
}

/// Ids of transfers for completion.
enum TransferCompletion {
    /// Returns the transfers that have not ended; only `last` if the records cannot be read.
    static func ids() async -> [String] {
        var configuration = ClientConfiguration(serverURL: ClientOptions.localServer)
        configuration.logger = Logger(label: "kedge.completion") { _ in SwiftLogNoOpLogHandler() }
        guard let client = try? await TransferClient(configuration: configuration),
            let transfers = try? await client.transfers()
        else { return ["last"] }
        // The process ends next.
        try? await client.close()
        return transfers.filter { !$0.state.isFinal }.map(\.id.text) + ["last"]
    }
}
