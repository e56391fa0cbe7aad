internal import Foundation
internal import KedgeModel

/// Data for the caller: results, lists, JSON.
enum StandardOutput {
    /// Whether the output is a terminal, where names must have no control characters.
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Writes the text. A closed pipe ends the process with success, because the reader is gone.
    /// Any other error, such as a full disk, ends it with failure, because output would be missing.
    static func write(_ text: String) {
        if !isOpen(after: writeAll(text, to: STDOUT_FILENO)) { endProcess(ExitStatus.success) }
    }

    /// Writes the text like ``write(_:)``, but continues without a reader, for a command with other
    /// work to do.
    static func offer(_ text: String) { _ = isOpen(after: writeAll(text, to: STDOUT_FILENO)) }

    private static func isOpen(after failure: Int32?) -> Bool {
        guard let failure, failure != EPIPE else { return failure == nil }
        StandardError.write("kedge: cannot write to standard output: \(text(failure))\n")
        endProcess(ExitStatus.failure)
    }

    private static func text(_ number: Int32) -> String { String(cString: strerror(number)) }
}

/// Messages and progress for the user.
enum StandardError {
    /// Writes the text. Ignores errors: there is no place to report them.
    static func write(_ text: String) { _ = writeAll(text, to: STDERR_FILENO) }

    /// Whether the stream is a terminal that can redraw a line.
    static var isTerminal: Bool {
        isatty(STDERR_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
    }

    static var columnCount: Int { size.map { Int($0.ws_col) }.flatMap { $0 > 20 ? $0 : nil } ?? 80 }

    static var rowCount: Int { size.map { Int($0.ws_row) }.flatMap { $0 > 0 ? $0 : nil } ?? 24 }

    private static var size: winsize? {
        var size = winsize()
        return ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 ? size : nil
    }
}

/// Writes all of the text; returns the error number of the failed call, or nil.
private func writeAll(_ text: String, to descriptor: Int32) -> Int32? {
    var text = text
    return text.withUTF8 { bytes in
        var done = 0
        while done < bytes.count {
            let rest = UnsafeBufferPointer(rebasing: bytes[done...])
            let count = Foundation.write(descriptor, rest.baseAddress, rest.count)
            if count > 0 {
                done += count
            } else if count < 0, errno == EAGAIN {
                // The terminal or pipe is non-blocking: waits until it accepts more.
                var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&wait, 1, -1)
            } else if count == 0 || errno != EINTR {
                return count == 0 ? EIO : errno
            }
        }
        return nil
    }
}
