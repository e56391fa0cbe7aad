package import GRDB
package import KedgeEngine
internal import KedgeLocks

/// Runs operations on one connection, those that wait at the same time in one transaction.
///
/// A commit costs a sync of the disk whether it carries one operation or two hundred. While one
/// commit is under way the next operations gather, and all of them share the next one. Nobody hears
/// of an operation's success before the commit that carries it has returned.
package final class GroupCommit: Sendable {
    private struct State {
        var waiting: [any QueuedOperation] = []
        var isDraining = false
        var isFinished = false
        var fatalFailure: MetadataError?

        /// Why nothing is accepted any more.
        var refusal: MetadataError? {
            fatalFailure ?? (isFinished ? .unavailable("the database is closed") : nil)
        }
    }

    /// Most operations that may wait. The layers above admit far fewer requests; this bounds what a
    /// mistake there can do to memory.
    private static let waitingLimit = 10_000

    private let state = Mutex(State())
    private let queue: DatabaseQueue
    private let commit: @Sendable (Database) throws -> Void
    private let onFatal: @Sendable (String) -> Void

    /// - Parameters:
    ///   - onFatal: Called at most once, when the disk under the database failed in a way after
    ///     which nobody can say what is stored. The process should end: opening the database anew
    ///     reads what is really there.
    ///   - commit: Ends a transaction; tests make it fail.
    package init(
        queue: DatabaseQueue, onFatal: @escaping @Sendable (String) -> Void,
        commit: @escaping @Sendable (Database) throws -> Void = { try $0.commit() }
    ) {
        self.queue = queue
        self.onFatal = onFatal
        self.commit = commit
    }

    /// Runs the body with others in a transaction and returns once that is committed. When the body
    /// throws, its own changes are undone and those of the others stay. Not cancelled by the task.
    package func write<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(MetadataError) -> Value {
        try await perform(writes: true, body)
    }

    /// Runs the body on the same connection: it sees everything that was reported as written, and
    /// is only answered once what it saw is committed.
    package func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(MetadataError) -> Value {
        try await perform(writes: false, body)
    }

    /// Lets what waits finish and refuses everything after it.
    package func finish() async throws(MetadataError) {
        try await perform(writes: false, isLast: true) { _ in }
    }

    private func perform<Value: Sendable>(
        writes: Bool, isLast: Bool = false,
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(MetadataError) -> Value {
        let result: Result<Value, MetadataError> = await withCheckedContinuation { continuation in
            let operation = ResultOperation(
                writes: writes, body: body, continuation: continuation)
            if let refusal = add(operation, isLast: isLast) { operation.finish(refusal) }
        }
        return try result.get()
    }

    /// Puts the operation in the queue; returns why not.
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
            // Immediate: a transaction that starts with reading could find itself unable to write.
            if isWriting { try db.beginTransaction(.immediate) }
            for operation in batch { try operation.run(in: db) }
            if isWriting { try commit(db) }
            for operation in batch { operation.finish(nil) }
        } catch {
            let failure = rollBack(after: error, in: db)
            for operation in batch { operation.finish(failure) }
        }
    }

    /// Undoes the transaction; ends everything when the connection cannot be trusted any more.
    private func rollBack(after error: any Error, in db: Database) -> MetadataError {
        let failure = MetadataError(error)
        var isFatal = SQLiteFailure.isFatal(error)
        do {
            if db.isInsideTransaction { try db.rollback() }
        } catch {
            // The first error is the one to report; this one only says that there is no way back.
            isFatal = true
        }
        guard isFatal else { return failure }
        let isFirst = state.withLock { state in
            defer { state.fatalFailure = failure }
            return state.fatalFailure == nil
        }
        // Before anybody is answered: when the process ends here, the outcome stays what it is,
        // unknown, instead of being reported as a failure.
        if isFirst { onFatal("\(failure)") }
        return failure
    }
}
