package import KedgeEngine
internal import KedgeLocks
internal import KedgeModel

/// A metadata store in memory whose machine can lose power.
///
/// It keeps the promises of the port, as the conformance tests show. A committed transaction is
/// durable at once, unless a test makes the store break that promise.
package final class SimulatedMetadata: MetadataStore {
    /// When a commit survives a cut.
    package enum Durability: Sendable {
        case immediate
        /// The last transactions are lost, as without a sync. Shows that a test notices.
        case late(transactions: Int)
    }

    /// The effect of a failed transaction.
    package enum FailureMoment: Sendable {
        /// Nothing.
        case before
        /// Everything: the transaction was committed, and its answer was lost.
        case after
    }

    fileprivate struct Failure: Sendable {
        var position: Int
        let moment: FailureMoment
    }

    fileprivate struct State: Sendable {
        var rows: MetadataRows
        /// The rows before each of the last transactions, the oldest first.
        var history: [MetadataRows] = []
        var isOff = false
        var failure: Failure?
        var hasFailed = false
        var transactionCount = 0
    }

    private let durability: Durability
    private let state: Mutex<State>

    /// An empty store.
    package convenience init(durability: Durability = .immediate) {
        self.init(MetadataRows(), durability: durability)
    }

    private init(_ rows: MetadataRows, durability: Durability) {
        self.durability = durability
        state = Mutex(State(rows: rows))
    }

    /// A store with the rows that a power cut now would leave. This one goes on.
    package var survivor: SimulatedMetadata {
        let rows = state.withLock { state in
            switch durability {
            case .immediate: state.rows
            case .late: state.history.first ?? state.rows
            }
        }
        return SimulatedMetadata(rows, durability: durability)
    }

    /// Cuts the power: no call succeeds any more.
    ///
    /// - Returns: A store with the rows that survive.
    package func cut() -> SimulatedMetadata {
        state.withLock { $0.isOff = true }
        return survivor
    }

    /// Plans one transaction to fail after `position` transactions that succeed.
    package func fail(after position: Int, _ moment: FailureMoment) {
        state.withLock {
            $0.failure = Failure(position: position, moment: moment)
            $0.hasFailed = false
        }
    }

    /// Lets every transaction succeed from now on.
    package func heal() { state.withLock { $0.failure = nil } }

    /// True once the planned transaction has failed.
    package var hasFailed: Bool { state.withLock { $0.hasFailed } }
    /// Number of committed transactions.
    package var transactionCount: Int { state.withLock { $0.transactionCount } }

    /// Reads the rows outside any transaction: no failure is due.
    func inspect<Value>(_ body: (MetadataRows) throws -> Value) throws -> Value {
        try state.withLock { state in
            guard !state.isOff else { throw MetadataError.unavailable("the power is off") }
            return try body(state.rows)
        }
    }

    func read<Value>(_ body: (MetadataRows) throws -> Value) throws -> Value {
        try state.withLock { state in
            guard !state.isOff else { throw MetadataError.unavailable("the power is off") }
            if state.takesFailure() != nil { throw Self.planned }
            return try body(state.rows)
        }
    }

    /// Runs a transaction, which changes nothing when the body throws.
    func write<Value>(_ body: (inout MetadataRows) throws -> Value) throws -> Value {
        try state.withLock { state in
            guard !state.isOff else { throw MetadataError.unavailable("the power is off") }
            let failure = state.takesFailure()
            if failure == .before { throw Self.planned }
            var rows = state.rows
            let value = try body(&rows)
            if case .late(let count) = durability {
                state.history.append(state.rows)
                state.history = state.history.suffix(count)
            }
            state.rows = rows
            state.transactionCount += 1
            if failure == .after { throw Self.planned }
            return value
        }
    }

    private static let planned = MetadataError.unavailable("planned")

    package func rowCounts() async throws -> RowCounts {
        try read { rows in
            let states = rows.sessions.values.map(\.record.state)
            return RowCounts(
                openSessions: states.count { $0 == .open },
                finalizingSessions: states.count { $0 == .finalizing },
                garbage: rows.garbage.count)
        }
    }

    package func checkHealth() async throws { try write { _ in } }

    package func close() async throws {}
}

extension SimulatedMetadata.State {
    /// Counts this transaction. Returns how it fails, when it is planned to.
    fileprivate mutating func takesFailure() -> SimulatedMetadata.FailureMoment? {
        guard var failure else { return nil }
        failure.position -= 1
        self.failure = failure
        guard failure.position == -1 else { return nil }
        hasFailed = true
        return failure.moment
    }
}
