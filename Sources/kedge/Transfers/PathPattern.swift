internal import Foundation
internal import KedgeModel

/// A pattern for paths below a folder, as `--include` and `--exclude` take it.
///
/// `*`, `?` and `[…]` match within one component, `**` any number of components. A pattern without
/// `/` matches the name of the file or of any folder above it; one with `/` matches from the folder
/// that was named, the file or a folder above it.
struct PathPattern: Sendable {
    private let components: [String]
    private let isAnchored: Bool

    init(_ text: String) {
        let trimmed = text.hasSuffix("/") ? String(text.dropLast()) : text
        isAnchored = trimmed.contains("/")
        components = FilePath.components(of: trimmed).filter { !$0.isEmpty }
    }

    /// - Parameter path: A relative path.
    func matches(_ path: String) -> Bool {
        let names = FilePath.components(of: path)
        guard isAnchored else {
            return components.first.map { pattern in
                names.contains { Self.matches($0, pattern) }
            } ?? false
        }
        return (1...max(1, names.count)).contains {
            Self.matches(names.prefix($0), components[...])
        }
    }

    private static func matches(
        _ names: ArraySlice<String>, _ patterns: ArraySlice<String>
    ) -> Bool {
        guard let pattern = patterns.first else { return names.isEmpty }
        guard pattern != "**" else {
            return (names.startIndex...names.endIndex).contains {
                matches(names[$0...], patterns.dropFirst())
            }
        }
        guard let name = names.first, matches(name, pattern) else { return false }
        return matches(names.dropFirst(), patterns.dropFirst())
    }

    private static func matches(_ name: String, _ pattern: String) -> Bool {
        // Canonical forms: a name typed on one system finds the same name of another.
        UnicodeLocale.run {
            fnmatch(
                pattern.precomposedStringWithCanonicalMapping,
                name.precomposedStringWithCanonicalMapping, 0) == 0
        }
    }
}
