internal import ArgumentParser
internal import Glibc

/// Measures the release binaries from outside.
@main
struct KedgeBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kedge-bench",
        abstract: "Measures Kedge on this machine, beside its peers and the floors under it.",
        discussion: """
            Prints a table. The status is 1 when an answer was wrong or the server took far more
            memory than it should; a target that was not met is only reported.
            """)

    @Option(help: "The kedge binary to measure.") var kedge: String?
    @Option(help: "The rclone binary to compare with; without one that is left out.")
    var rclone: String?
    @Option(help: "The directory of the scripts that measure links; without it they are left out.")
    var links: String?
    @Option(
        help: """
            The directory of the scripts that issue tokens and hold connections; without it, what \
            needs them is left out.
            """) var identity: String?
    @Option(help: "Directory in which everything is written and removed again.")
    var directory = "/tmp"
    @Option(help: "File for the results as JSON.") var output: String?
    @Flag(help: "Everything small and once, in a minute; to see that it works.") var smoke = false
    @Option(help: "Times that each throughput is measured.") var runs: Int?
    @Option(help: "Names of what to measure, by comma; all without it.") var only: String?
    @Option(help: "Bytes of a raw upload; those of the command are twice as many.")
    var size: Int?
    @Option(help: "Bytes of a chunk.") var chunkSize: Int?
    @Flag(help: "Lists what can be measured, and ends.") var list = false

    func validate() throws {
        guard list || kedge != nil else { throw ValidationError("--kedge is missing.") }
        guard runs ?? 1 >= 1 else { throw ValidationError("--runs is at least 1.") }
        guard size ?? 1 >= 1 else { throw ValidationError("--size is at least 1.") }
        guard chunkSize ?? (1 << 20) >= 256 << 10, chunkSize ?? 0 <= 64 << 20 else {
            throw ValidationError("--chunk-size is between 262144 and 67108864.")
        }
        let names = Measurement.all.map(\.name)
        if let unknown = wanted.first(where: { !names.contains($0) }) {
            throw ValidationError("\(unknown) is not one of: \(names.joined(separator: ", ")).")
        }
    }

    private var wanted: [String] {
        only.map { $0.split(separator: ",").map(String.init) } ?? Measurement.all.map(\.name)
    }

    private func settings() throws -> Settings {
        var scale = smoke ? Scale.smoke : Scale.full
        if let runs { scale.runs = runs }
        if let size { scale.rawByteCount = size }
        if let chunkSize { scale.chunkByteCount = chunkSize }
        guard let kedge, access(kedge, X_OK) == 0 else {
            throw BenchFailure("\(kedge ?? "") is no program")
        }
        return Settings(
            kedge: kedge, rclone: rclone.flatMap { access($0, X_OK) == 0 ? $0 : nil },
            linkScripts: links, identityScripts: identity, scale: scale, isSmoke: smoke)
    }

    func run() throws {
        if list {
            for measurement in Measurement.all {
                print("\(measurement.name): \(measurement.summary)")
            }
            return
        }
        let settings = try settings()
        Machine.raiseFileLimit()
        // A server that closes early is an error to report, not a reason to die.
        signal(SIGPIPE, SIG_IGN)
        let scratch = try Scratch(in: directory, neededByteCount: settings.scale.neededByteCount)
        Interruption.cleanUp(scratch)
        defer {
            LiveChildren.killAll()
            scratch.remove()
        }
        let report = try measure(settings, scratch)
        print(report.text)
        if let output { try report.write(to: output) }
        if !report.failures.isEmpty { throw ExitCode.failure }
    }

    /// Runs the requested measurements. A measurement that fails does not keep the others from
    /// running.
    private func measure(_ settings: Settings, _ scratch: Scratch) throws -> Report {
        var report = Report(
            machine: Machine(), hashPath: try HashPath.name(of: settings.kedge, in: scratch),
            settings: settings)
        if scratch.isInMemory {
            report.notes.append("the directory is in memory: syncs cost nothing")
        }
        let source = try SourceFile(in: scratch, byteCount: settings.scale.commandByteCount)
        let bench = Bench(settings: settings, scratch: scratch, source: source)
        for measurement in Measurement.all where wanted.contains(measurement.name) {
            let began = ContinuousClock.now
            Progress.tell("\(measurement.name): \(measurement.summary)")
            do {
                scratch.settle()
                report.add(try measurement.run(bench), of: measurement.name)
            } catch {
                report.failures.append("\(measurement.name): \(error)")
            }
            Progress.tell("\(measurement.name): \(elapsedSeconds(since: began).formatted) s")
        }
        return report
    }
}
