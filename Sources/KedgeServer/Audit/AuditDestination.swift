/// The place of the audit log.
package enum AuditDestination: Hashable, Sendable {
    case off
    case standardError
    case file(String)

    /// Reads `off`, `stderr`, or a path with a slash; nil for other text. A word alone is a mistake
    /// rather than a file in the current directory.
    package init?(text: String) {
        switch text {
        case "off": self = .off
        case "stderr": self = .standardError
        default:
            guard text.contains("/"), !text.hasSuffix("/") else { return nil }
            self = .file(text)
        }
    }
}
