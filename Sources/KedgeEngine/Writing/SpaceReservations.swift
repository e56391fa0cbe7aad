internal import KedgeLocks
internal import KedgeModel

/// Space that admitted bodies will still take. Without it many bodies would each be promised the same
/// free bytes, and together leave the database no room to say what arrived.
final class SpaceReservations: Sendable {
    private let reserved = Mutex<Int64>(0)

    /// Runs the body while `byteCount` bytes are set aside for it.
    ///
    /// - Throws: `STORAGE_FULL` when they are not there.
    func reserving<Result>(
        _ byteCount: Int64, of store: any ByteStore, _ body: () async throws -> Result
    ) async throws -> Result {
        let available = try await store.availableBytes()
        let fits = reserved.withLock { reserved in
            guard available - reserved >= byteCount else { return false }
            reserved += byteCount
            return true
        }
        guard fits else { throw EngineError(.storageFull) }
        defer { reserved.withLock { $0 -= byteCount } }
        return try await body()
    }
}
