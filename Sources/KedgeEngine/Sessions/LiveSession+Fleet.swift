internal import KedgeModel

// What a session does because other nodes have it, too.
extension LiveSession {
    /// Learns what other nodes have changed. Does nothing in a process that is alone.
    ///
    /// - Throws: `SESSION_NOT_FOUND` when the session is gone.
    func refresh() async throws {
        guard let fleet = parts.fleet else { return }
        var before: Int
        var answer: SessionChanges?
        repeat {
            before = changeCount
            answer = try await fleet.changes(of: id, since: ledger.revision)
            // An answer from before a change of this node would put an older picture over it.
        } while before != changeCount
        guard let changes = answer else {
            becomeStale()
            throw EngineError(.sessionNotFound)
        }
        guard !changes.isWhole else {
            // Chunks were taken back, and the hash may have gone over them: begin anew.
            setState(changes.record.state)
            return becomeStale()
        }
        apply(changes)
        if let checkpoint = changes.record.prefix { await prefix.adopt(checkpoint) }
    }

    /// Learns of a change at once, and acts on it: writers of a session that was closed elsewhere stop, and
    /// a hash that has come as far as bytes of this node goes on over them.
    func heed() async throws {
        do {
            try await refresh()
        } catch let error as EngineError where error.code == .sessionNotFound {
            return stopWriters(.sessionClosed)
        }
        guard ledger.record.state == .open else { return stopWriters(.sessionClosed) }
        guard !isRetired else { return stopWriters(.replaced) }
        await followPrefix()
    }

    /// Waits until no other node writes the chunk: its writer is asked to stop, and fenced off when it does
    /// not within a moment. Its bytes stay if it is alive.
    func lease(
        _ index: Int, from fleet: any FleetMetadataStore, for writer: ActiveWriter
    ) async throws -> WriterToken {
        let settings = parts.configuration
        let token = WriterToken(index: index, text: (parts.makeID() as SessionID).text)
        var waited = Duration.zero
        while true {
            let claim = try await fleet.claimWriter(
                token, of: id, lease: settings.writerLease,
                takesOver: waited >= settings.fleetTakeoverGrace)
            if claim == .granted { break }
            try await parts.timer.sleep(for: settings.fleetTakeoverStep)
            waited += settings.fleetTakeoverStep
        }
        parts.leases.add(token, of: id) { writer.interrupt(.replaced) }
        return token
    }

    /// Lets other nodes have the chunk at once. Without this they have to wait for the end of the lease,
    /// so a failure needs no care.
    func giveBack(_ token: WriterToken) async {
        parts.leases.remove(token)
        try? await parts.fleet?.releaseWriter(token, of: id)
    }
}
