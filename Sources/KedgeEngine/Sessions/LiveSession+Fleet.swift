internal import KedgeModel

// Coordination of a session with other nodes.
extension LiveSession {
    /// Loads the changes that other nodes made. Does nothing in a single-node deployment.
    func refresh() async throws {
        guard let fleet = context.fleet else { return }
        var before: Int
        var answer: SessionChanges?
        repeat {
            before = changeCount
            answer = try await fleet.changes(of: id, since: ledger.revision)
            // An answer from before a change of this node would overwrite that change.
        } while before != changeCount
        guard let changes = answer else {
            becomeStale()
            throw EngineError(.sessionNotFound)
        }
        guard !changes.isWhole else {
            // Chunks were invalidated, and the hash may include their bytes: load the session
            // again.
            setState(changes.record.state)
            return becomeStale()
        }
        apply(changes)
        if let checkpoint = changes.record.prefix { await prefix.adopt(checkpoint) }
    }

    /// Handles a change notification. Stops the writers of a session that another node closed.
    /// Continues the whole-file hash if it has reached bytes of this node.
    func handleChange() async throws {
        do {
            try await refresh()
        } catch let error as EngineError where error.code == .sessionNotFound {
            return stopWriters(.sessionClosed)
        }
        guard ledger.record.state == .open else { return stopWriters(.sessionClosed) }
        guard !isRetired else { return stopWriters(.replaced) }
        await followPrefix()
    }

    /// Takes the lease on a chunk. Asks a writer on another node to stop and waits until it has
    /// saved its bytes. After ``EngineConfiguration/fleetTakeoverGrace`` its fencing token is
    /// revoked.
    func lease(
        _ index: Int, from fleet: any FleetMetadataStore, for writer: ActiveWriter
    ) async throws -> FencingToken {
        let settings = context.configuration
        let token = FencingToken(index: index, text: (context.makeID() as SessionID).text)
        var waited = Duration.zero
        while true {
            let claim = try await fleet.claimWriter(
                token, of: id, lease: settings.writerLease,
                takesOver: waited >= settings.fleetTakeoverGrace)
            if claim == .granted { break }
            try await context.timer.sleep(for: settings.fleetTakeoverStep)
            waited += settings.fleetTakeoverStep
        }
        context.heldTokens.add(token, of: id) { writer.interrupt(.replaced) }
        return token
    }

    /// Releases the chunk, so that another node gets it at once. A failure is ignored, because that
    /// node takes the chunk over after its grace.
    func release(_ token: FencingToken) async {
        context.heldTokens.remove(token)
        try? await context.fleet?.releaseWriter(token, of: id)
    }
}
