internal import KedgeLocks
public import KedgeTransport

/// The limits of all transfers of a client together. May be changed while they run.
public final class BandwidthLimit: Sendable {
    private let state: Mutex<BandwidthRates>

    /// Creates a limit.
    public init(_ rates: BandwidthRates = BandwidthRates()) { state = Mutex(rates) }

    /// The rates in force.
    public var rates: BandwidthRates {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
