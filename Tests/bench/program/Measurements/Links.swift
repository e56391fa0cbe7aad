internal import Foundation

/// Transfers over far, lossy and dying links, and transfers that go on after a kill.
///
/// Scripts measure them in network namespaces of their own, which need root.
enum Links {
    /// Status of a script that cannot run on this machine; see `Tests/support/skipping.py`.
    private static let skippedStatus: Int32 = 77
    /// Upper bound of a script's time, with every transfer at its own bound.
    private static let limitSeconds: Double = 3 * 3600

    /// The JSON file of a script.
    private struct Results: Decodable {
        let rows: [Line]
        let notes: [String]
    }

    private struct Line: Decodable {
        let id: String
        let title: String
        let unit: String
        let values: [Double]
        let peer: String?
        let peerValues: [Double]?
    }

    static func measure(_ bench: Bench) throws -> Measured {
        guard let scripts = bench.settings.linkScripts else {
            return Measured(notes: ["links are not measured: --links names no scripts"])
        }
        let rclone = bench.settings.rclone.map { ["--rclone", $0] } ?? []
        let transfers = try run(
            "\(scripts)/measure_links.py", bench.settings.isSmoke ? ["--smoke"] : rclone, bench)
        let resumption = try run(
            "\(scripts)/resume_time.py", bench.settings.isSmoke ? ["--mib", "64"] : [], bench)
        return Measured(
            rows: transfers.rows + resumption.rows, tables: transfers.tables + resumption.tables,
            notes: transfers.notes + resumption.notes)
    }

    /// Runs a script and reads its results.
    ///
    /// - Throws: ``BenchFailure`` when it fails, or cannot run here and `ALLOW_SKIP` does not name
    ///   it.
    private static func run(
        _ script: String, _ words: [String], _ bench: Bench
    ) throws -> Measured {
        let directory = try bench.scratch.makeDirectory("links")
        defer { Scratch.remove(directory) }
        let (output, log) = ("\(directory)/output", "\(directory)/log")
        let results = "\(directory)/results.json"
        let process = try BenchProcess(
            try Executable.require("python3"),
            [
                script, "--binary", bench.settings.kedge, "--directory", directory,
                "--output", results,
            ] + words,
            home: directory, output: output, log: log)
        let status = try process.wait(limit: limitSeconds).status
        let talk = try TextFile.read(log)
        if status == skippedStatus << 8, isSkipAllowed {
            return Measured(notes: talk.split(separator: "\n").prefix(1).map(String.init))
        }
        guard status == 0 else {
            throw BenchFailure("\(script) ended with status \(status): \(talk.suffix(400))")
        }
        let read = try JSONDecoder().decode(
            Results.self, from: Data(TextFile.read(results).utf8))
        return Measured(
            rows: try read.rows.map(row), tables: [try TextFile.read(output)], notes: read.notes)
    }

    private static func row(_ line: Line) throws -> Row {
        guard let unit = Row.Unit(rawValue: line.unit) else {
            throw BenchFailure("\(line.id): \(line.unit) is no unit")
        }
        let peer = line.peer.map { Series(name: $0, values: line.peerValues ?? []) }
        return Row(line.id, line.title, unit, line.values, peer: peer)
    }

    private static var isSkipAllowed: Bool {
        let names = ProcessInfo.processInfo.environment["ALLOW_SKIP"] ?? ""
        return names.split(separator: " ").contains("links")
    }
}
