internal import KedgeServer
internal import Logging

/// A message of the service that does not depend on the log level: a line for people, or one of the
/// log where the log is for programs.
enum Announcement {
    static func write(
        _ message: String, _ level: Logger.Level, in configuration: ServiceConfiguration
    ) {
        guard configuration.logFormat == .json else {
            return StandardError.write("kedge: \(printable(message, keepsLines: true))\n")
        }
        let handler = LogLines(label: "kedge", format: .json, level: .trace)
        Logger(label: "kedge") { _ in handler }.log(level: level, "\(message)")
    }
}
