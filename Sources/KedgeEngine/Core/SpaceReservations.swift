internal import KedgeLocks
internal import KedgeModel

/// The space that admitted bodies will still use. Without reservations, many bodies would rely on
/// the same free bytes, and the database would have no room left for their rows.
final class SpaceReservations: Sendable {
    private let reserved = Mutex<Int64>(0)

    /// Number of bytes that are reserved now.
    var byteCount: Int64 { reserved.withLock { $0 } }

    /// Runs the closure while `byteCount` bytes are reserved for it.
    ///
    /// - Throws: `STORAGE_FULL` when they are not free.
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
