internal import KedgeLocks
package import Logging

/// A log that keeps its lines for a test.
package final class CapturedLog: Sendable {
    package struct Line: Sendable {
        package var level: Logger.Level
        package var metadata: Logger.Metadata
    }

    private let kept = Mutex<[Line]>([])

    package init() {}

    package var lines: [Line] { kept.withLock { $0 } }

    package func logger() -> Logger {
        Logger(label: "test") { _ in Handler(log: self) }
    }

    private struct Handler: LogHandler {
        let log: CapturedLog
        var logLevel = Logger.Level.info
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let all = metadata.merging(event.metadata ?? [:]) { $1 }
            log.kept.withLock { $0.append(Line(level: event.level, metadata: all)) }
        }
    }
}
