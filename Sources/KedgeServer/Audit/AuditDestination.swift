/// The place of the audit log.
package enum AuditDestination: Hashable, Sendable {
    case off
    case standardError
    case file(String)

    /// Reads `off`, `stderr`, or a path with a slash or a dot; nil for other text. A word alone,
    /// such as `on`, is a mistake rather than a file in the current directory.
    package init?(text: String) {
        switch text {
        case "off": self = .off
        case "stderr": self = .standardError
        default:
            let name = text.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
            guard text.contains("/") || text.contains("."), !["", ".", ".."].contains(name) else {
                return nil
            }
            self = .file(text)
        }
    }
}
