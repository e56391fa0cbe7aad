/// Limits how many bodies run at once. Further callers wait in order.
package actor ConcurrencyLimit {
    private var freeCount: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// - Parameter count: Number of bodies that may run at once; above zero.
    package init(_ count: Int) { freeCount = count }

    /// Runs the body once fewer others run than the limit.
    package nonisolated func withPermit<Result: Sendable>(
        _ body: () async throws -> Result
    ) async throws -> Result {
        await acquire()
        do {
            let result = try await body()
            await release()
            return result
        } catch {
            await release()
            throw error
        }
    }

    private func acquire() async {
        guard freeCount == 0 else {
            freeCount -= 1
            return
        }
        // A permit is handed over, so no other caller can take it in between.
        await withCheckedContinuation { waiting.append($0) }
    }

    private func release() {
        if waiting.isEmpty { freeCount += 1 } else { waiting.removeFirst().resume() }
    }
}
