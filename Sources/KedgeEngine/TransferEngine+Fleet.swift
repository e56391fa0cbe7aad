extension TransferEngine {
    /// True when other nodes use the same stores.
    package var isInFleet: Bool { context.fleet != nil }

    /// Renews the leases of this node and handles change notifications of other nodes, until the
    /// task is cancelled.
    package func runInFleet() async {
        await fleetNode.runInFleet()
    }
}
