internal import Foundation

/// Data for whoever called: results, lists, JSON.
enum StandardOutput {
    /// Writes the text. A closed pipe ends the process quietly: nobody reads any more.
    static func write(_ text: String) {
        guard !writeAll(text, to: STDOUT_FILENO), errno == EPIPE else { return }
        exit(0)
    }
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
    static var columnCount: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 20 else {
            return 80
        }
        return Int(size.ws_col)
    }
}

private func writeAll(_ text: String, to descriptor: Int32) -> Bool {
    var text = text
    return text.withUTF8 { bytes in
        var done = 0
        while done < bytes.count {
            let rest = UnsafeBufferPointer(rebasing: bytes[done...])
            let count = Foundation.write(descriptor, rest.baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }
}
