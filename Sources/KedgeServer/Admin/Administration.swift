internal import KedgeIdentity
internal import KedgeModel

/// The stores that operators manage through the service.
package struct Administration: Sendable {
    let tokens: any TokenStore
    let owners: any OwnerStore
    /// Forgets what this process keeps of a changed token or owner.
    let onChange: @Sendable (IdentityChange) -> Void
    /// The clock of the rows.
    let now: @Sendable () -> Timestamp

    /// Forgets what other nodes change, until the store reports no more changes or the task is
    /// canceled.
    func followChanges() async {
        for await change in tokens.identityChanges() { onChange(change) }
    }
}
