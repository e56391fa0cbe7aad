internal import KedgeDisk
internal import KedgeEngine

/// The stores of a service, open for a check.
struct CheckPlace {
    let rows: any CheckedRows
    let bytes: any CheckedBytes
    /// Nil when nothing may be changed.
    let repairs: RepairedStores?
    /// What keeps others away from the data directory; nil where nothing is in it, and where a store does
    /// that by itself.
    private let hold: DiskInspection?
    private let open: OpenThings

    init(
        rows: any CheckedRows, bytes: any CheckedBytes, repairs: RepairedStores?,
        hold: DiskInspection?, open: OpenThings
    ) {
        self.rows = rows
        self.bytes = bytes
        self.repairs = repairs
        self.hold = hold
        self.open = open
    }

    /// True while another process uses the data directory.
    var isBesideService: Bool { hold?.isShared == true }

    /// - Throws: ``CommandFailure`` when a process came in between.
    func confirmUndisturbed() async throws {
        guard let hold else { return }
        try await CheckOpening.naming("the data directory") { try await hold.confirmUndisturbed() }
    }

    /// Gives everything up.
    func close() async { await open.close() }
}

/// What was opened and is to be given up, the last one first.
struct OpenThings {
    private var closings: [@Sendable () async -> Void] = []

    mutating func willClose(_ closing: @escaping @Sendable () async -> Void) {
        closings.append(closing)
    }

    func close() async {
        for closing in closings.reversed() { await closing() }
    }
}
