internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// A link as the user names it: as a URL, as `@FILE` whose first line it is, or as `-` for a line
/// of standard input. Arguments are visible to other users of the machine, files need not be.
enum LinkArgument {
    /// Longest file that is read for a link.
    private static let maxByteCount = 64 << 10

    /// Returns the URL that a word stands for; nil if it is no link. A server of the settings takes
    /// precedence over a file of its name.
    ///
    /// - Throws: ``CommandFailure`` if the word can only be a link, and is none.
    static func url(_ word: String) throws -> String? {
        switch word.first {
        case "-" where word == "-":
            let line = readLine()?.trimmingCharacters(in: .whitespaces) ?? ""
            guard ServiceLink(line) != nil else {
                throw failure("standard input has no link in its first line.")
            }
            return line
        case "@":
            return try isServer(word.dropFirst()) ? nil : urlInFile(String(word.dropFirst()))
        default:
            return ServiceLink(word) == nil ? nil : word
        }
    }

    /// Whether the word names a file that has a link.
    static func isFile(_ word: String) -> Bool {
        guard word.hasPrefix("@"), !isServer(word.dropFirst()) else { return false }
        // Read again, with its error, when the link is used.
        return (try? urlInFile(String(word.dropFirst()))) != nil
    }

    private static func isServer(_ name: Substring) -> Bool {
        let environment = ProcessInfo.processInfo.environment
        // Mistakes in the settings are reported when a server is looked up.
        let settings = try? ClientSettings.load(environment: environment)
        return settings?.servers[String(name)] != nil
    }

    private static func urlInFile(_ path: String) throws -> String? {
        guard let file = try SettingsFile.read(path) else { return nil }
        let line = file.text.prefix { !$0.isNewline }.trimmingCharacters(in: .whitespaces)
        guard file.text.utf8.count <= maxByteCount, ServiceLink(line) != nil else {
            throw failure(
                "\(path) has no link in its first line, and there is no server of this name.")
        }
        return line
    }

    private static func failure(_ message: String) -> CommandFailure {
        CommandFailure("kedge: \(message)", exitStatus: ExitStatus.usage)
    }
}
