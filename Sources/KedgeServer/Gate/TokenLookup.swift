internal import KedgeIdentity
internal import KedgeLocks
internal import KedgeModel
internal import Logging

/// Verifies API tokens against their rows, and records their uses.
///
/// Rows are kept for ``cacheLifetime``. A revocation by another process counts at once if the store
/// reports it, and after that time at the latest. Expiry counts at once, because each use compares
/// it with the clock.
final class TokenLookup: Sendable {
    private struct Entry {
        var record: TokenRecord
        var readAt: Timestamp
        /// The last use that was recorded, or whose recording has begun.
        var touchedAt: Timestamp?
    }

    private struct State {
        var entries: [TokenID: Entry] = [:]
        /// Number of calls of ``TokenLookup/forget(_:)``.
        var forgottenCount = 0
        var touches: [TokenID: Task<Void, Never>] = [:]
    }

    /// Time for which a row is not read again.
    static let cacheLifetime = Duration.seconds(10)
    /// Maximum number of kept rows.
    static let cacheLimit = 10_000
    /// Time between two recorded uses of a token.
    static let touchInterval = Duration.seconds(60)

    private let store: any TokenStore
    private let now: @Sendable () -> Timestamp
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameter now: The clock of the rows.
    init(
        store: any TokenStore, now: @escaping @Sendable () -> Timestamp, logger: Logger
    ) {
        self.store = store
        self.now = now
        self.logger = logger
    }

    /// Returns the row of a valid token.
    ///
    /// - Throws: `UNAUTHENTICATED`; an error of the store.
    func verify(_ token: APIToken) async throws -> TokenRecord {
        let record = try await record(token.id)
        switch TokenRecord.verify(token, against: record, at: now()) {
        case .valid(let record):
            noteUse(of: record.id)
            return record
        case .unknown: throw RequestError.badCredential("The service does not know the token.")
        case .expired: throw RequestError.badCredential("The token has expired.")
        case .revoked: throw RequestError.badCredential("The token was revoked.")
        }
    }

    /// Whether there is a valid token.
    func hasValidToken() async throws -> Bool { try await store.hasValidToken(at: now()) }

    /// Reads the row of the token again at its next use.
    func forget(_ id: TokenID) {
        state.withLock { state in
            state.entries[id] = nil
            state.forgottenCount += 1
        }
    }

    /// Waits until all uses are recorded. The store may be closed afterwards, and no token may be
    /// verified.
    func finish() async {
        for task in state.withLock({ Array($0.touches.values) }) { await task.value }
    }

    private func record(_ id: TokenID) async throws -> TokenRecord? {
        let now = now()
        let (kept, forgottenCount) = state.withLock { state -> (TokenRecord?, Int) in
            let entry = state.entries[id].flatMap { Self.isFresh($0, at: now) ? $0 : nil }
            return (entry?.record, state.forgottenCount)
        }
        if let kept { return kept }
        let record = try await store.token(id)
        state.withLock { state in
            // The row may have been read before a revocation that was reported meanwhile.
            guard state.forgottenCount == forgottenCount else { return }
            guard let record else {
                // An unknown id takes no room. Otherwise requests with invented ids could fill it.
                state.entries[id] = nil
                return
            }
            if state.entries.count >= Self.cacheLimit, state.entries[id] == nil {
                state.entries = state.entries.filter { Self.isFresh($0.value, at: now) }
                if state.entries.count >= Self.cacheLimit { state.entries = [:] }
            }
            let touchedAt = [state.entries[id]?.touchedAt, record.lastUsedAt].compactMap { $0 }
            state.entries[id] = Entry(record: record, readAt: now, touchedAt: touchedAt.max())
        }
        return record
    }

    /// Whether the row was read lately. A clock that went back makes it stale.
    private static func isFresh(_ entry: Entry, at now: Timestamp) -> Bool {
        entry.readAt <= now && now.duration(since: entry.readAt) < cacheLifetime
    }

    /// Records the use in the background, at most once in ``touchInterval``.
    private func noteUse(of id: TokenID) {
        let now = now()
        state.withLock { state in
            guard state.touches[id] == nil, let entry = state.entries[id] else { return }
            if let last = entry.touchedAt, last.advanced(by: Self.touchInterval) > now { return }
            state.entries[id]?.touchedAt = now
            // Awaited by `finish()`. It removes itself only after this closure has added it,
            // because that needs the lock.
            state.touches[id] = Task { [self] in await touch(id, at: now) }
        }
    }

    private func touch(_ id: TokenID, at time: Timestamp) async {
        do {
            try await store.touchToken(id, at: time)
        } catch {
            // The time of the last use is only information for people.
            logger.debug(
                "recording the use of a token failed",
                metadata: ["token.id": "\(id)", "error": "\(String(reflecting: error))"])
        }
        state.withLock { $0.touches[id] = nil }
    }
}
