internal import Foundation
internal import KedgeModel

/// Data for whoever called: results, lists, JSON.
enum StandardOutput {
    /// True when a person reads it, who wants names without control characters.
    static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Writes the text. A closed pipe ends the process quietly: nobody reads any more. Any other
    /// failure, as of a full disk, ends it as failed: somebody would miss what could not be written.
    static func write(_ text: String) {
        if !isOpen(after: writeAll(text, to: STDOUT_FILENO)) { endProcess(ExitStatus.success) }
    }

    /// The same for a command that has more to do than to write: it goes on without a reader.
    static func offer(_ text: String) { _ = isOpen(after: writeAll(text, to: STDOUT_FILENO)) }

    private static func isOpen(after failure: Int32?) -> Bool {
        guard let failure, failure != EPIPE else { return failure == nil }
        StandardError.write("kedge: cannot write to standard output: \(text(failure))\n")
        endProcess(ExitStatus.failure)
    }

    private static func text(_ number: Int32) -> String { String(cString: strerror(number)) }
}

/// Talk and progress for a person.
enum StandardError {
    /// Writes the text; there is nowhere to report that nobody can read it.
    static func write(_ text: String) { _ = writeAll(text, to: STDERR_FILENO) }

    /// True when a person looks at it on a terminal that can redraw a line.
    static var isTerminal: Bool {
        isatty(STDERR_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
    }

    /// Columns of the terminal.
    static var columnCount: Int { size.map { Int($0.ws_col) }.flatMap { $0 > 20 ? $0 : nil } ?? 80 }

    /// Rows of the terminal.
    static var rowCount: Int { size.map { Int($0.ws_row) }.flatMap { $0 > 0 ? $0 : nil } ?? 24 }

    private static var size: winsize? {
        var size = winsize()
        return ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 ? size : nil
    }
}

/// Writes all of the text; the error number of the call that failed, or nil.
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
                // Somebody made the terminal or pipe non-blocking: wait until it takes more.
                var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&wait, 1, -1)
            } else if count == 0 || errno != EINTR {
                return count == 0 ? EIO : errno
            }
        }
        return nil
    }
}
