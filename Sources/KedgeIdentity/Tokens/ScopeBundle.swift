/// Scopes that a kind of client needs together, under one name.
package enum ScopeBundle: String, CaseIterable, Sendable {
    /// A client that only uploads.
    case uploader
    /// A client that only lists and downloads files.
    case reader
    /// A person, or a program that acts for one.
    case user
    /// A program that acts for many owners.
    case backend
    /// Every scope.
    case admin

    package var scopes: Set<Scope> {
        switch self {
        case .uploader: [.uploadsWrite, .uploadsRead]
        case .reader: [.filesRead, .filesList]
        case .user:
            [.uploadsWrite, .uploadsRead, .filesRead, .filesList, .filesDelete, .linksCreate]
        case .backend: ScopeBundle.user.scopes.union([.actAs])
        case .admin: Set(Scope.allCases)
        }
    }
}
