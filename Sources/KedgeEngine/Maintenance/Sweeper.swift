internal import KedgeFiles
internal import KedgeModel
internal import Logging

/// Maintains sessions, bytes and pending finalizes in rounds.
struct Sweeper: Sendable {
    let context: EngineContext
    let registry: SessionRegistry
    let garbageCollector: GarbageCollector
    let resumption: FinalizeResumption

    /// Runs one sweep: expires sessions, forgets those past their grace, evicts idle sessions from
    /// memory, removes garbage, and resumes finalizes and concatenations that were left behind.
    func sweep() async throws {
        await keepBusySessions()
        try await translating {
            let now = context.clock.now()
            let graceEnd = now.advanced(by: .zero - context.configuration.expiryGrace)
            let ended = try await context.metadata.expireSessions(
                now: now, graceEnd: graceEnd, limit: 500)
            for id in ended { await registry.drop(id) }
            let idleSince = now.advanced(by: .zero - context.configuration.idleSessionLifetime)
            await registry.evict(idleSince: idleSince)
        }
        await garbageCollector.collectGarbage()
        try await translating { try await resumption.resumeLeftBehind() }
    }

    /// Extends empty sessions whose first bytes are on their way.
    private func keepBusySessions() async {
        for id in context.busySessions.ids {
            do {
                try await registry.session(inMemory: id)?.stayAliveWhileEmpty()
            } catch {
                context.logger.warning(
                    "session renewal failed",
                    metadata: ["session.id": "\(id)", "error": "\(String(reflecting: error))"])
            }
        }
    }
}
