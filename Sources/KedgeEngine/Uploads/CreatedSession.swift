package import KedgeModel

/// The session of a create.
package struct CreatedSession: Sendable {
    package let status: SessionStatus
    /// False for a session that an earlier create made: by the same idempotency key, or by the same
    /// request with the same one-use link. A failure of this request must not cancel it.
    package let isNew: Bool
    package let createdAt: Timestamp

    package var id: SessionID { status.sessionId }
}
