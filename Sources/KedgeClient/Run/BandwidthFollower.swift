package import KedgeTransport

/// Finds the requests for other limits that are made while a client follows them.
package struct BandwidthFollower: Sendable {
    /// Number of the last request, 0 if there was none. Nil until the records were read once: a
    /// request found then may be older than this client.
    private var lastNumber: Int64?

    package init() {}

    /// Takes the last request of the records, nil if there is none.
    ///
    /// - Returns: The rates to adopt; nil for no change.
    package mutating func note(_ request: BandwidthRequest?) -> BandwidthRates? {
        let known = lastNumber
        lastNumber = request?.number ?? 0
        guard let known, known != lastNumber else { return nil }
        return request?.rates
    }
}
