internal import Foundation

/// One run of the client command, with records and all else that a user has.
struct KedgeCommand {
    /// The client's part of the transfer.
    let sample: TransferSample
    /// Id of the file on the server; nil when the command prints none.
    let remoteFileID: String?

    private struct Line: Decodable {
        let remoteFileId: String?
    }

    /// Runs the command with its own home directory and waits until it ends.
    ///
    /// - Throws: ``BenchFailure`` with the command's output when it fails.
    init(_ bench: Bench, server: KedgeServer, byteCount: Int, _ words: [String]) throws {
        let home = try bench.scratch.makeDirectory("client")
        defer { Scratch.remove(home) }
        let output = "\(home)/output"
        let log = "\(home)/log"
        let began = ContinuousClock.now
        let process = try BenchProcess(
            bench.settings.kedge,
            words + ["--server", "http://127.0.0.1:\(server.port)", "--json"],
            home: home, output: output, log: log)
        var peakKiB = 0
        let outcome = try process.wait(limit: 900) {
            peakKiB = max(peakKiB, ProcessUsage(of: process.id).peakKiB)
        }
        sample = TransferSample(
            byteCount: byteCount, seconds: elapsedSeconds(since: began),
            cpuSeconds: outcome.cpuSeconds, peakKiB: peakKiB)
        guard outcome.status == 0 else {
            let talk = try TextFile.read(log).suffix(400)
            throw BenchFailure("kedge \(words[0]) ended with status \(outcome.status): \(talk)")
        }
        let last = try TextFile.read(output).split(separator: "\n").last ?? ""
        remoteFileID = try JSONDecoder().decode(Line.self, from: Data(last.utf8)).remoteFileId
    }
}

/// The samples of a command's runs, of the client and of the server.
struct CommandSamples {
    var client: [TransferSample] = []
    var server: [TransferSample] = []
    /// Speed of SHA-256 on all cores, sampled between the runs.
    var digests: [Double] = []

    /// The rows: speed beside the floor, and CPU and memory of both sides.
    func rows(_ id: String, _ title: String, byteCount: Int, passes: Int) -> [Row] {
        [
            Row(
                "\(id).speed", title, .mebibytesPerSecond, client.map(\.mebibytesPerSecond),
                floor: .digests(byteCount: byteCount, passes: passes, speeds: digests)),
            Row(
                "\(id).client-cpu", "\(title): client", .cpuSecondsPerGiB,
                client.map(\.cpuSecondsPerGiB)),
            Row("\(id).client-memory", "\(title): client", .mebibytes, client.map(\.peakMiB)),
            Row("\(id).cpu", "\(title): server", .cpuSecondsPerGiB, server.map(\.cpuSecondsPerGiB)),
            Row("\(id).memory", "\(title): server", .mebibytes, server.map(\.peakMiB)),
        ]
    }
}
