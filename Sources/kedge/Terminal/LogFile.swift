internal import Foundation
internal import KedgeModel

/// A file to which log lines are appended, readable only by its owner: lines name files.
final class LogFile: Sendable {
    private let descriptor: Int32

    /// - Throws: ``CommandFailure`` if the file cannot be opened.
    init(at path: String) throws {
        descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw CommandFailure(
                "kedge: the log file \(path) cannot be opened: \(reason).",
                exitStatus: ExitStatus.usage)
        }
    }

    deinit { close(descriptor) }

    /// Appends a line. Ignores errors: a full disk must not stop a transfer.
    func append(_ line: String) {
        var line = line
        line.withUTF8 { _ = unsafe write(descriptor, $0.baseAddress, $0.count) }
    }
}
