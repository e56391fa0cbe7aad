internal import GRDB
internal import KedgeEngine
internal import KedgeLocks

/// An operation that waits for its transaction, with a waiting caller.
protocol QueuedOperation: Sendable {
    /// False for a read.
    var writes: Bool { get }
    /// Runs the operation and keeps its result, including its own error.
    ///
    /// - Throws: Errors that lose the whole transaction.
    func run(in db: Database) throws
    /// Resumes the caller with the failure of the whole transaction, or the operation's result.
    func finish(_ failure: MetadataError?)
}

/// An operation with a result of some type.
final class ResultOperation<Value: Sendable>: QueuedOperation {
    let writes: Bool
    private let body: @Sendable (Database) throws -> Value
    private let continuation: CheckedContinuation<Result<Value, MetadataError>, Never>
    private let result = Mutex(Result<Value, MetadataError>.failure(.failed("it was not run")))

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
            // Some errors, such as a full disk, roll back the whole transaction. The operations
            // after it would then run in transactions of their own.
            let isLost = isInTransaction && !db.isInsideTransaction
            if isLost || SQLiteFailure.isFatal(error) { throw error }
        }
    }

    func finish(_ failure: MetadataError?) {
        let own = result.withLock { $0 }
        continuation.resume(returning: failure.map { .failure($0) } ?? own)
    }

    /// Runs the body; if it throws, only its changes are rolled back.
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
