internal import KedgeMetrics
internal import KedgeModel

/// Admits the bodies of clients: each is written in a place of its own, and none once the service
/// stops.
struct BodyAdmission: Sendable {
    let drain: Drain
    let places: WritePlaces
    let transferClock: TransferClock
    let metrics: Metrics

    /// Number of bodies being written now.
    var activeWriteCount: Int { places.count }

    /// True while clients transfer bytes in either direction.
    var isTransferring: Bool { places.count > 0 || transferClock.isRecent }

    /// Runs an operation with a body if there is a place for one more.
    ///
    /// - Parameters:
    ///   - session: The upload that the body belongs to; nil while it has no identifier.
    ///   - isEvictable: Whether bytes count as they arrive. Such a body may be stopped, and its
    ///     client asked to come back, while other bodies wait.
    /// - Throws: `BUSY` at the limit and when stopped this way, `UNAVAILABLE` during shutdown.
    func admitting<Result>(
        _ origin: BodyOrigin, to session: SessionID?, owner: OwnerID, isEvictable: Bool,
        _ write: (WritePlace) async throws -> Result
    ) async throws -> Result {
        guard !drain.isUnderWay else {
            throw EngineError(.unavailable, "The service is stopping.")
        }
        let place = try places.enter(
            WriteAdmission.Arrival(
                key: ShareKey(owner: owner, address: origin.address), session: session,
                isEvictable: isEvictable), progress: origin.progress)
        defer { transferClock.tick() }
        do {
            let result = try await translating { try await write(place) }
            places.leave(place, isWhole: true)
            return result
        } catch {
            places.leave(place, isWhole: false)
            metrics.increment(.uploadInterruptions)
            throw error
        }
    }
}
