/// A right of a principal. Its text appears in tokens, claims, the contract and the command.
package enum Scope: String, CaseIterable, Sendable {
    case uploadsWrite = "uploads:write"
    case uploadsRead = "uploads:read"
    case filesRead = "files:read"
    case filesList = "files:list"
    case filesDelete = "files:delete"
    case linksCreate = "links:create"
    case metricsRead = "metrics:read"
    /// To act for another owner, with the scopes of the principal itself.
    case actAs = "act-as"
    case admin

    /// Reads a list of scopes and bundles, separated by commas. Empty text is the empty set.
    ///
    /// `admin` is the bundle with every scope. A principal that manages tokens can make itself one
    /// with any scope, so the scope alone would be no restriction.
    ///
    /// - Throws: ``UnknownScope`` for the first word that is neither.
    package static func parse(_ text: String) throws(UnknownScope) -> Set<Scope> {
        var scopes: Set<Scope> = []
        guard !text.isEmpty else { return scopes }
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let word = trimmed(part)
            if let bundle = ScopeBundle(rawValue: word) {
                scopes.formUnion(bundle.scopes)
            } else if let scope = Scope(rawValue: word) {
                scopes.insert(scope)
            } else {
                throw UnknownScope(word: word)
            }
        }
        return scopes
    }

    /// Returns the list that ``parse(_:)`` reads, in alphabetical order.
    package static func text(of scopes: some Sequence<Scope>) -> String {
        scopes.sorted().map(\.rawValue).joined(separator: ",")
    }

    /// Reads the list of a stored token, word for word. A word that only a later version knows
    /// gives no right.
    package static func stored(_ text: String) -> Set<Scope> {
        Set(text.split(separator: ",").compactMap { Scope(rawValue: String($0)) })
    }

    private static func trimmed(_ text: Substring) -> String {
        var word = text.drop { $0 == " " }
        while word.last == " " { word.removeLast() }
        return String(word)
    }
}

extension Scope: Comparable {
    /// Compares the texts.
    package static func < (left: Scope, right: Scope) -> Bool { left.rawValue < right.rawValue }
}

/// A word that is neither a scope nor a bundle.
package struct UnknownScope: Error, Hashable, Sendable {
    package let word: String

    package init(word: String) { self.word = word }
}

extension UnknownScope: CustomStringConvertible {
    package var description: String {
        let scopes = Scope.allCases.filter { $0 != .admin }.map(\.rawValue)
        let known = ScopeBundle.allCases.map(\.rawValue) + scopes
        return "\"\(word)\" is no scope; known are \(known.joined(separator: ", "))."
    }
}
