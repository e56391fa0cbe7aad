internal import GRDB
internal import KedgeEngine
internal import KedgeLocks

/// An operation that waits for its transaction, and somebody who waits for the operation.
protocol QueuedOperation: Sendable {
    /// False when it only looks.
    var writes: Bool { get }
    /// Runs the operation and keeps its result; an error of its own is part of the result.
    ///
    /// - Throws: Errors after which the whole transaction is lost.
    func run(in db: Database) throws
    /// Tells the one who waits: the failure of the whole transaction, or the operation's result.
    func finish(_ failure: MetadataError?)
}

/// An operation with a result of some type.
final class ResultOperation<Value: Sendable>: QueuedOperation {
    let writes: Bool
    private let body: @Sendable (Database) throws -> Value
    private let continuation: CheckedContinuation<Result<Value, MetadataError>, Never>
    private let result = Mutex(Result<Value, MetadataError>.failure(.failed("it did not run")))

    init(
        writes: Bool, body: @escaping @Sendable (Database) throws -> Value,
        continuation: CheckedContinuation<Result<Value, MetadataError>, Never>
    ) {
        self.writes = writes
        self.body = body
        self.continuation = continuation
    }

    func run(in db: Database) throws {
        let isInTransaction = db.isInsideTransaction
        do {
            let value = try writes ? runInSavepoint(of: db) : body(db)
            result.withLock { $0 = .success(value) }
        } catch {
            result.withLock { $0 = .failure(MetadataError(error)) }
            // A full disk, for one, ends the whole transaction, and what others had written is
            // gone. Going on would put the rest into transactions of their own.
            let isLost = isInTransaction && !db.isInsideTransaction
            if isLost || SQLiteFailure.isFatal(error) { throw error }
        }
    }

    func finish(_ failure: MetadataError?) {
        let own = result.withLock { $0 }
        continuation.resume(returning: failure.map { .failure($0) } ?? own)
    }

    /// When the body throws, its changes alone are undone.
    private func runInSavepoint(of db: Database) throws -> Value {
        var value: Value?
        try db.inSavepoint {
            value = try body(db)
            return .commit
        }
        guard let value else { throw MetadataError.failed("the savepoint was rolled back") }
        return value
    }
}
