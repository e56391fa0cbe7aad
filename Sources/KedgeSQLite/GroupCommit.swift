package import GRDB
package import KedgeEngine
internal import KedgeLocks
package import KedgeMetrics

/// Runs operations on one connection and commits those that wait together in one transaction.
///
/// A commit costs one sync of the disk, for one operation or two hundred. The operations that
/// arrive during a commit share the next one. An operation is acknowledged only after its commit
/// has returned.
package final class GroupCommit: Sendable {
    private struct State {
        var waiting: [any QueuedOperation] = []
        var isDraining = false
        var isFinished = false
        var fatalFailure: MetadataError?

        /// The reason to refuse further operations.
        var refusal: MetadataError? {
            fatalFailure ?? (isFinished ? .unavailable("the database is closed") : nil)
        }
    }

    /// Largest number of waiting operations. The layers above admit far fewer requests; this bounds
    /// the memory that a mistake there could take.
    private static let waitingLimit = 10_000

    private let state = Mutex(State())
    private let queue: DatabaseQueue
    private let commit: @Sendable (Database) throws -> Void
    private let onFatal: @Sendable (String) -> Void
    private let metrics: Metrics

    /// Creates a queue of operations.
    ///
    /// - Parameters:
    ///   - onFatal: Called at most once, when the disk failed in a way that leaves the stored
    ///     content unknown. The process should end: opening the database again reads what is really
    ///     stored.
    ///   - metrics: Gets the time of each operation.
    ///   - commit: Ends a transaction; tests make it fail.
    package init(
        queue: DatabaseQueue, onFatal: @escaping @Sendable (String) -> Void,
        metrics: Metrics = Metrics(),
        commit: @escaping @Sendable (Database) throws -> Void = { try $0.commit() }
    ) {
        self.queue = queue
        self.onFatal = onFatal
        self.metrics = metrics
        self.commit = commit
    }

    /// Runs the body in a shared transaction and returns once that is committed. If the body
    /// throws, only its own changes are rolled back. Cancelling the task does not stop it.
    package func write<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(MetadataError) -> Value {
        try await perform(writes: true, body)
    }

    /// Runs the body on the same connection: it sees all acknowledged writes. It returns once the
    /// changes that it may have seen are committed.
    package func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(MetadataError) -> Value {
        try await perform(writes: false, body)
    }

    /// Finishes the queued operations and refuses later ones.
    package func finish() async throws(MetadataError) {
        try await perform(writes: false, isLast: true) { _ in }
    }

    private func perform<Value: Sendable>(
        writes: Bool, isLast: Bool = false,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(MetadataError) -> Value {
        let start = ContinuousClock.now
        defer {
            let operation = writes ? "write" : "read"
            metrics.observe(.storeOperationSeconds, since: start, ["sqlite", operation])
        }
        let result: Result<Value, MetadataError> = await withCheckedContinuation { continuation in
            let operation = ResultOperation(
                writes: writes, body: body, continuation: continuation)
            if let refusal = add(operation, isLast: isLast) { operation.finish(refusal) }
        }
        return try result.get()
    }

    /// Queues the operation, or returns the reason for refusing it.
    private func add(_ operation: any QueuedOperation, isLast: Bool) -> MetadataError? {
        let (refusal, mustStart): (MetadataError?, Bool) = state.withLock { state in
            if let refusal = state.refusal { return (refusal, false) }
            guard state.waiting.count < Self.waitingLimit else {
                return (.unavailable("too many operations wait for the database"), false)
            }
            if isLast { state.isFinished = true }
            state.waiting.append(operation)
            defer { state.isDraining = true }
            return (nil, !state.isDraining)
        }
        // The connection's own serial queue is a thread that may block.
        if mustStart { queue.asyncWriteWithoutTransaction { self.drain($0) } }
        return refusal
    }

    private func drain(_ db: Database) {
        while let batch = takeBatch() { run(batch, in: db) }
    }

    private func takeBatch() -> [any QueuedOperation]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isDraining = false
                return nil
            }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    private func run(_ batch: [any QueuedOperation], in db: Database) {
        let isWriting = batch.contains(where: \.writes)
        do {
            // Immediate: a transaction that begins with a read might be unable to write later.
            if isWriting { try db.beginTransaction(.immediate) }
            for operation in batch { try operation.run(in: db) }
            if isWriting { try commit(db) }
            for operation in batch { operation.finish(nil) }
        } catch {
            let failure = rollBack(after: error, in: db)
            for operation in batch { operation.finish(failure) }
        }
    }

    /// Rolls the transaction back. Refuses all further operations when the connection is not
    /// reliable.
    private func rollBack(after error: any Error, in db: Database) -> MetadataError {
        let failure = MetadataError(error)
        var isFatal = SQLiteFailure.isFatal(error)
        do {
            if db.isInsideTransaction { try db.rollback() }
        } catch {
            // The first error is reported; this one only shows that the rollback failed.
            isFatal = true
        }
        guard isFatal else { return failure }
        let isFirst = state.withLock { state in
            defer { state.fatalFailure = failure }
            return state.fatalFailure == nil
        }
        // Before the operations are answered: if the process ends here, their outcome stays unknown
        // instead of being reported as a failure.
        if isFirst { onFatal("\(failure)") }
        return failure
    }
}
