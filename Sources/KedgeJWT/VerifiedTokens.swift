internal import KedgeIdentity
internal import KedgeLocks
internal import KedgeModel

/// Tokens that were verified lately, by their digests, so that each request of a client does not
/// cost a signature.
final class VerifiedTokens: Sendable {
    /// Longest time for which a token is not verified again. A key that the issuer has removed
    /// counts for this time more.
    static let lifetime: Duration = .seconds(60)
    /// Maximum number of tokens.
    static let limit = 10_000

    private struct Entry {
        let principal: Principal
        let verifiedAt: Timestamp
        let endsAt: Timestamp

        /// A clock that went back makes an entry invalid.
        func isFresh(at now: Timestamp) -> Bool { verifiedAt <= now && now < endsAt }
    }

    private let entries = Mutex<[SHA256Digest: Entry]>([:])

    func principal(of token: SHA256Digest, at now: Timestamp) -> Principal? {
        entries.withLock { entries in
            guard let entry = entries[token], entry.isFresh(at: now) else { return nil }
            return entry.principal
        }
    }

    func insert(
        _ token: SHA256Digest, _ principal: Principal, expiresAt: Timestamp, at now: Timestamp
    ) {
        let endsAt = min(expiresAt, now.advanced(by: Self.lifetime))
        guard endsAt > now else { return }
        entries.withLock { entries in
            if entries.count >= Self.limit, entries[token] == nil {
                entries = entries.filter { $0.value.isFresh(at: now) }
                if entries.count >= Self.limit { entries = [:] }
            }
            entries[token] = Entry(principal: principal, verifiedAt: now, endsAt: endsAt)
        }
    }
}
