internal import Foundation

/// All results, as they are printed and written.
struct Report {
    let machine: Machine
    /// The instructions with which the measured binary computes SHA-256.
    let hashPath: String
    let settings: Settings
    var rows: [Row] = []
    /// The measurement of each row, by the row's id.
    private var measurements: [String: String] = [:]
    /// Tables of scripts.
    var tables: [String] = []
    /// Measurements that were skipped, and why.
    var notes: [String] = []
    /// Failures of measurements.
    var failures: [String] = []

    init(machine: Machine, hashPath: String, settings: Settings) {
        self.machine = machine
        self.hashPath = hashPath
        self.settings = settings
    }

    /// Adds the rows of a measurement. A row that exceeds its limit is a failure.
    mutating func add(_ measured: Measured, of measurement: String) {
        for row in measured.rows { measurements[row.id] = measurement }
        rows += measured.rows
        tables += measured.tables
        notes += measured.notes
        for row in measured.rows {
            guard let limit = Target.of(row)?.limit, row.ours.median > limit else { continue }
            let value = "\(row.ours.median.formatted) \(row.unit.rawValue)"
            failures.append("\(row.title): \(value), and the limit is \(limit.formatted)")
        }
    }

    var text: String {
        let first = """
            \(machine.cores) cores, \(machine.processor), \(machine.memoryMiB) MiB of memory, \
            Linux \(machine.kernel), SHA-256 with \(hashPath)
            \(settings.description)
            All over loopback; downloads come from the page cache. nginx and rclone sync nothing.
            """
        let remarks = (notes.map { "Note: \($0)" } + failures.map { "WRONG: \($0)" })
            .joined(separator: "\n")
        return ([first, Table(rows: rows).text] + tables + [remarks]).filter { !$0.isEmpty }
            .joined(separator: "\n\n")
    }

    /// Writes the report for programs; `version` counts incompatible changes.
    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let file = ReportFile(
            version: 1, machine: machine, hashPath: hashPath, isSmoke: settings.isSmoke,
            runs: settings.scale.runs,
            rows: rows.map { ReportFile.Line($0, of: measurements[$0.id] ?? "") },
            notes: notes, failures: failures)
        let text = String(decoding: try encoder.encode(file), as: UTF8.self)
        try TextFile.write(text + "\n", to: path)
    }
}

/// The JSON file.
private struct ReportFile: Encodable {
    let version: Int
    let machine: Machine
    let hashPath: String
    let isSmoke: Bool
    let runs: Int
    let rows: [Line]
    let notes: [String]
    let failures: [String]

    struct Line: Encodable {
        let id: String
        /// The name for `--only`.
        let measurement: String
        let title: String
        let unit: Row.Unit
        let median: Double
        let values: [Double]
        let peer: Series?
        let peerMedian: Double?
        let ratio: Double?
        let floor: Row.Floor?
        let floorRatio: Double?
        let target: String?
        let isMet: Bool?

        init(_ row: Row, of measurement: String) {
            id = row.id
            self.measurement = measurement
            title = row.title
            unit = row.unit
            median = row.ours.median
            values = row.ours.values
            peer = row.peer
            peerMedian = row.peer?.median
            ratio = row.ratio
            floor = row.floor
            floorRatio = row.floorRatio
            let target = Target.of(row)
            self.target = target?.text
            isMet = target?.isMet(by: row)
        }
    }
}
