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
        let line = Swift.readLine()
        if isShown { HiddenInput.show(true) }
        for number in [SIGTSTP, SIGQUIT] { signal(number, SIG_DFL) }
        StandardError.write("\n")
        return line
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
