internal import KedgeFiles
internal import KedgeLocks
package import Logging

/// The audit log: one JSON object in each line.
///
/// A line is written before the answer leaves. A failure to write is logged, and the request goes
/// on: a full disk of the log must not stop the service.
package final class AuditLog: Sendable {
    package typealias Instant = RequestRate.Instant

    private struct Refusals {
        var usedUntil: Instant?
        var suppressedCount = 0
    }

    /// Lines for refusals in a second, and at once. Any client can cause refusals.
    package static let refusalsPerSecond = 10

    private let file: AuditFile
    // A disk that hangs must not hold a thread of the cooperative pool.
    private let pool = BlockingPool(threadCount: 1)
    private let refusalRate = RequestRate(
        count: AuditLog.refusalsPerSecond, per: .seconds(1), burst: AuditLog.refusalsPerSecond)
    private let refusals = Mutex(Refusals())
    private let now: @Sendable () -> Instant
    private let warning: WarningPace
    private let logger: Logger

    /// - Parameters:
    ///   - path: The file; nil for standard error.
    ///   - now: A clock that never goes back.
    /// - Throws: The error of opening the file.
    package init(
        path: String?, logger: Logger,
        now: @escaping @Sendable () -> Instant = { ContinuousClock.now }
    ) throws {
        file = try AuditFile(path)
        self.now = now
        warning = WarningPace(now: now)
        self.logger = logger
    }

    /// Writes a line.
    package func record(_ entry: AuditEntry) async {
        let line = entry.line
        do {
            try await pool.run { [file] in try file.append(line) }
        } catch {
            warn("writing the audit log failed", error)
        }
    }

    /// Writes a line for a refusal, unless there were too many of them in the last second. The next
    /// line has the number of those that were left out.
    package func recordRefusal(_ entry: AuditEntry) async {
        let now = now()
        let suppressedCount = refusals.withLock { state -> Int? in
            if refusalRate?.wait(at: now, usedUntil: state.usedUntil) != nil {
                state.suppressedCount += 1
                return nil
            }
            state.usedUntil = refusalRate?.end(at: now, usedUntil: state.usedUntil)
            defer { state.suppressedCount = 0 }
            return state.suppressedCount
        }
        guard let suppressedCount else { return }
        var entry = entry
        entry.suppressed = suppressedCount > 0 ? suppressedCount : nil
        await record(entry)
    }

    /// Opens the file again, after a program that rotates logs has given it another name.
    package func reopen() async {
        do {
            try await pool.run { [file] in try file.reopen() }
        } catch {
            logger.error(
                "reopening the audit log failed", metadata: ["error": "\(error)"])
        }
    }

    /// Closes the file. No request may be recorded afterwards.
    func finish() async {
        let count = refusals.withLock { $0.suppressedCount }
        if count > 0 {
            logger.notice(
                "refusals are not in the audit log", metadata: ["count": "\(count)"])
        }
        do {
            try await pool.run { [file] in try file.close() }
        } catch {
            warn("closing the audit log failed", error)
        }
    }

    private func warn(_ message: Logger.Message, _ error: any Error) {
        guard warning.isDue() else { return }
        logger.error(message, metadata: ["error": "\(error)"])
    }
}
