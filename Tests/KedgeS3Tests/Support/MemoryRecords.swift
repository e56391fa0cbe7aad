import KedgeEngine
import KedgeLocks

/// Staging records in memory; every key belongs to a session.
final class MemoryRecords: StagingRecords {
    private let states = Mutex<[StagingKey: String]>([:])

    func stagingState(of key: StagingKey) async throws -> String? {
        states.withLock { $0[key] }
    }

    func setStagingState(
        _ state: String?, of key: StagingKey, replacing expected: String?
    ) async throws -> String? {
        states.withLock { states in
            if states[key] == expected { states[key] = state }
            return states[key]
        }
    }
}
