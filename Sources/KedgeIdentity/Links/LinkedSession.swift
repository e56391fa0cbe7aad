package import KedgeModel

/// The session that a `session` link continues, and the clients that may use the link.
package struct LinkedSession: Hashable, Sendable {
    package let session: SessionID
    /// Origins of pages that may use the link; empty for pages of the service alone.
    package var origins: [String] = []
    /// Networks from which the link may be used; empty for all.
    package var networks: [String] = []

    package init(session: SessionID) { self.session = session }
}
