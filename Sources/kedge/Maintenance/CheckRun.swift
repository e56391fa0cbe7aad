internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel
internal import KedgeSQLite
internal import KedgeServer

/// One run of `kedge fsck` or `kedge scrub`, from opening to the exit status.
struct CheckRun {
    /// Settings for reading in a scrub.
    struct Hashing {
        var bytesPerSecond: Int64?
    }

    private let options: CheckOptions
    /// Nil compares names and sizes only.
    private let hashing: Hashing?

    init(options: CheckOptions, hashing: Hashing?) {
        self.options = options
        self.hashing = hashing
    }

    /// Prints findings and a summary to standard output.
    ///
    /// - Throws: ``CommandFailure`` with the exit status, unless no fault remains.
    func run() async throws {
        let configuration = try await options.configuration()
        let output = CheckOutput(isJSON: options.json)
        let tally = CheckTally { output.write($0) }
        // Awaited below. A signal cancels it, so that even an unfinished copy is removed.
        let work = Task { try await check(configuration, tally) }
        let interruption = Interruption { _ in work.cancel() }
        let progress = hashing.map { _ in
            // Canceled below.
            Task { await CheckProgress(tally: tally).show() }
        }
        let result = await work.result
        progress?.cancel()
        await progress?.value
        do {
            try result.get()
        } catch DatabaseCopyError.damaged {
            tally.report(
                CheckFinding(.databaseDamaged, "database", "SQLite does not recognize the file"))
        } catch {
            throw Self.failure(error, interruption)
        }
        output.write(tally.summary)
        guard tally.summary.isClean else {
            throw CommandFailure(nil, exitStatus: ExitStatus.integrity)
        }
    }

    private func check(_ configuration: ServiceConfiguration, _ tally: CheckTally) async throws {
        let pool = BlockingPool(threadCount: 4)
        let opening = CheckOpening(configuration: configuration, pool: pool)
        let place = try await options.repair ? opening.openForRepair() : opening.open()
        do {
            try await StoreCheck(
                rows: place.rows, bytes: place.bytes, repairs: place.repairs,
                scrubber: hashing.map {
                    ByteScrubber(pool: pool, bytesPerSecond: $0.bytesPerSecond)
                }, tally: tally
            ).run()
            try await place.confirmUndisturbed()
        } catch {
            await place.close()
            throw error
        }
        await place.close()
    }

    private static func failure(_ error: any Error, _ interruption: Interruption) -> any Error {
        if let status = interruption.exitStatus, error is CancellationError {
            return CommandFailure("kedge: stopped; findings so far are above", exitStatus: status)
        }
        if error is CommandFailure { return error }
        return CommandFailure("kedge: the check failed: \(String(reflecting: error))")
    }
}
