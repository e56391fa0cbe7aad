internal import Foundation

/// Lines of standard input that a terminal does not show, such as a token.
///
/// A signal that ends the command restores the terminal first. The value must live as long as the
/// command works: after its end, these signals are ignored.
final class HiddenInput: Sendable {
    private let isTerminal: Bool
    /// Whether the terminal shows input now, and must do so again.
    private let isShown: Bool
    private let interruption: Interruption?

    init() {
        var settings = termios()
        isTerminal = unsafe isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &settings) == 0
        isShown = isTerminal && settings.c_lflag & tcflag_t(ECHO) != 0
        guard isShown else {
            interruption = nil
            return
        }
        interruption = Interruption { number in
            HiddenInput.show(true)
            StandardError.write("\n")
            endProcess(128 + number)
        }
    }

    /// Reads a line; nil at the end of the input.
    ///
    /// - Parameter question: Text that a terminal shows before.
    func readLine(asking question: String) -> String? {
        guard isTerminal else { return Swift.readLine() }
        // A command that they stop would leave a terminal that shows nothing.
        for number in [SIGTSTP, SIGQUIT] { signal(number, SIG_IGN) }
        if isShown { HiddenInput.show(false) }
        StandardError.write(question)
        let line = Self.line()
        if isShown { HiddenInput.show(true) }
        for number in [SIGTSTP, SIGQUIT] { signal(number, SIG_DFL) }
        StandardError.write("\n")
        return line
    }

    /// Reads a line from the terminal; nil at the end of the input.
    ///
    /// Not by `readLine()`: it holds the lock of the standard stream, for which the end of the
    /// process by a signal would wait.
    private static func line() -> String? {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while true {
            let count = withUnsafeMutableBytes(of: &byte) {
                unsafe Foundation.read(STDIN_FILENO, $0.baseAddress, 1)
            }
            if count < 0, errno == EINTR { continue }
            guard count == 1 else { break }
            if byte == UInt8(ascii: "\n") { return String(decoding: bytes, as: UTF8.self) }
            bytes.append(byte)
        }
        return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
    }

    /// Makes the terminal show what is typed, or not. Input that no call has read is discarded.
    private static func show(_ isShown: Bool) {
        var settings = termios()
        guard unsafe tcgetattr(STDIN_FILENO, &settings) == 0 else { return }
        if isShown {
            settings.c_lflag |= tcflag_t(ECHO)
        } else {
            settings.c_lflag &= ~tcflag_t(ECHO)
        }
        unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
    }
}
