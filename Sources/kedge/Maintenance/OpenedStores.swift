internal import KedgeDisk
internal import KedgeEngine

/// The stores of a service, open for a check.
struct OpenedStores {
    let rows: any CheckedRows
    let bytes: any CheckedBytes
    /// Nil when nothing may be changed.
    let repairs: RepairedStores?
    /// Keeps other processes out of the data directory; nil if the directory is unused or a store
    /// locks it.
    private let hold: DiskInspection?
    private let open: OpenedResources

    init(
        rows: any CheckedRows, bytes: any CheckedBytes, repairs: RepairedStores?,
        hold: DiskInspection?, open: OpenedResources
    ) {
        self.rows = rows
        self.bytes = bytes
        self.repairs = repairs
        self.hold = hold
        self.open = open
    }

    /// Whether another process uses the data directory.
    var isBesideService: Bool { hold?.isShared == true }

    /// Checks that no other process used the data directory during the check.
    ///
    /// - Throws: ``CommandFailure`` if one did.
    func confirmUndisturbed() async throws {
        guard let hold else { return }
        try await CheckOpening.naming("the data directory") { try await hold.confirmUndisturbed() }
    }

    func close() async { await open.close() }
}

/// The opened resources, to be closed in reverse order.
struct OpenedResources {
    private var closings: [@Sendable () async -> Void] = []

    mutating func willClose(_ closing: @escaping @Sendable () async -> Void) {
        closings.append(closing)
    }

    func close() async {
        for closing in closings.reversed() { await closing() }
    }
}
