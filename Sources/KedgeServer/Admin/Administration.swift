internal import KedgeIdentity
internal import KedgeModel

/// The stores that operators manage through the service.
package struct Administration: Sendable {
    let tokens: any TokenStore
    /// Nil where every client is anonymous.
    let lookup: TokenLookup?
    /// The clock of the rows.
    let now: @Sendable () -> Timestamp
}
