package import KedgeFiles
internal import KedgeModel

/// Caches the credentials of the first source that has any, until shortly before they expire.
/// Concurrent requests share one fetch.
package actor CredentialsCache: CredentialsProvider {
    /// Time before expiry at which credentials are renewed; longer than a signed request may wait.
    private static let margin = Duration.seconds(300)

    private let sources: [any CredentialsSource]
    private let clock: any WallClock
    private var current: S3Credentials?
    private var loading: Task<S3Credentials, any Error>?

    package init(_ sources: [any CredentialsSource], clock: any WallClock) {
        self.sources = sources
        self.clock = clock
    }

    package func credentials() async throws -> S3Credentials {
        if let current, isFresh(current) { return current }
        do {
            return try await load()
        } catch {
            // Credentials that still work are kept; the next request tries again.
            if let current, !isOver(current) { return current }
            throw error
        }
    }

    package func invalidate(_ refused: S3Credentials) async {
        if current == refused { current = nil }
    }

    private func load() async throws -> S3Credentials {
        if let loading { return try await loading.value }
        // Awaited by every request that needs the credentials. A task, so that cancelling one of
        // them does not stop the fetch.
        let task = Task { [sources] in try await Self.first(of: sources) }
        loading = task
        defer { loading = nil }
        let loaded = try await task.value
        current = loaded
        return loaded
    }

    private static func first(of sources: [any CredentialsSource]) async throws -> S3Credentials {
        for source in sources {
            if let found = try await source.load() { return found }
        }
        throw S3SetupError("no credentials for the object store were found")
    }

    private func isFresh(_ credentials: S3Credentials) -> Bool {
        credentials.expiresAt.map { clock.now().advanced(by: Self.margin) < $0 } ?? true
    }

    private func isOver(_ credentials: S3Credentials) -> Bool {
        credentials.expiresAt.map { $0 <= clock.now() } ?? false
    }
}
