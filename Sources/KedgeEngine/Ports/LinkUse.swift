package import KedgeModel

/// The use of a link by the creation of a session.
package struct LinkUse: Hashable, Sendable {
    package let linkID: String
    /// Number of sessions that the link creates, at least 1.
    package let maxUses: Int
    /// Identifies the request by its file name and size. A repetition answers the first session.
    package let fingerprint: String
    /// The first moment at which the link is no longer valid. Its uses are stored until then.
    package let expiresAt: Timestamp

    package init(linkID: String, maxUses: Int, fingerprint: String, expiresAt: Timestamp) {
        self.linkID = linkID
        self.maxUses = maxUses
        self.fingerprint = fingerprint
        self.expiresAt = expiresAt
    }
}

extension LinkUse {
    /// Returns the time after which a session was completed that a repetition of its creation still
    /// finds. One rule for all stores.
    package static func repetitionStart(at now: Timestamp) -> Timestamp {
        now.advanced(by: .seconds(-3600))
    }
}

/// The tables whose rows are deleted when links end. One list for all stores.
package enum LinkRows {
    /// Time after the end of a link for which its rows stay: a clock that was wrong for some hours
    /// must not make a link usable again.
    package static let margin = Duration.seconds(24 * 3600)
    /// Each table with its primary key and the column of the end.
    package static let all = [
        (table: "link_use", key: "session_id", end: "expires_at"),
        (table: "revoked_link", key: "link_id", end: "until"),
        (table: "signing_key", key: "id", end: "verifies_until"),
    ]
}
