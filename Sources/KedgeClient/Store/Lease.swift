package import KedgeModel

/// The right of one process to run one transfer.
package struct Lease: Sendable, Hashable {
    package let id: TransferID
    package let direction: TransferDirection
    /// Names the owner; see ``LeaseOwner``.
    package let token: String

    package init(
        id: TransferID,
        direction: TransferDirection,
        token: String
    ) {
        self.id = id
        self.direction = direction
        self.token = token
    }
}

/// The owner columns of a record.
struct OwnerRow: Sendable {
    let token: String
    let heartbeat: Timestamp
}
