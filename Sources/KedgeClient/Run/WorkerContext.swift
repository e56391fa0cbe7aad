internal import KedgeFiles
internal import Logging

/// The dependencies of a worker for one run of one transfer.
struct WorkerContext: Sendable {
    let lease: Lease
    let store: TransferStore
    let api: ServerAPI
    let environment: ClientEnvironment
    /// Threads for reading, writing and hashing chunks.
    let pool: BlockingPool
    let coordinator: RetryCoordinator
    let rate: RateMeter
    let configuration: ClientConfiguration
    let logger: Logger

    /// Memory for all chunks in flight of one transfer.
    static let bufferBudgetByteCount: Int64 = 16 << 20

    /// Runs file operations on the pool and translates their errors.
    func onDisk<Result: Sendable>(
        _ operation: String, _ role: LocalFileRole, _ work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        do {
            return try await pool.run(work)
        } catch let error as FileError {
            throw TransferError(error, operation: operation, role: role)
        }
    }
}
