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
    /// Time after the end of a session in which a repetition of its creation still finds it.
    package static let repetitionMilliseconds: Int64 = 3_600_000
}
