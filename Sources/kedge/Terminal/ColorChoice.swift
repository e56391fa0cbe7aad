internal import ArgumentParser
internal import Foundation

/// The value of `--color`.
enum ColorChoice: String, ExpressibleByArgument, CaseIterable {
    case auto, always, never

    /// Whether text on standard error has colours: on a terminal, unless NO_COLOR is set to
    /// anything (https://no-color.org).
    var isOn: Bool {
        switch self {
        case .always: true
        case .never: false
        case .auto:
            StandardError.isTerminal
                && (ProcessInfo.processInfo.environment["NO_COLOR"] ?? "").isEmpty
        }
    }
}
