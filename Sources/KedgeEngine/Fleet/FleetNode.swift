internal import KedgeModel
internal import Logging

/// Does the work of a node in a fleet besides answering requests: renews leases and handles change
/// notifications.
struct FleetNode: Sendable {
    let context: EngineContext
    let registry: SessionRegistry
    let leases: FinalizeLeases
    let resumption: FinalizeResumption

    /// Renews the leases of this node and handles change notifications of other nodes, until the
    /// task is cancelled.
    func runInFleet() async {
        guard let fleet = context.fleet else { return }
        await withTaskGroup { group in
            group.addTask { await self.renewLeasesRegularly(in: fleet) }
            group.addTask {
                for await id in fleet.changeNotifications() {
                    await self.handleChange(id, in: fleet)
                }
            }
        }
    }

    private func renewLeasesRegularly(in fleet: any FleetMetadataStore) async {
        while !Task.isCancelled {
            do {
                try await context.timer.sleep(for: context.configuration.writerLease / 4)
            } catch {
                return
            }
            await renew(context.heldTokens.tokens(), in: fleet)
            do {
                try await leases.renewFinalizes()
            } catch {
                context.logger.warning(
                    "finalize lease renewal failed",
                    metadata: ["error": "\(String(reflecting: error))"])
                continue
            }
            do {
                // Not left to the sweep, which runs once a minute: a client waits for the file.
                try await resumption.takeOverFinalizes()
            } catch {
                context.logger.warning(
                    "finalize takeover failed",
                    metadata: ["error": "\(String(reflecting: error))"])
            }
        }
    }

    /// Renews leases of writers. A writer whose lease is not renewed goes on: its commit checks
    /// whether another writer has taken over.
    private func renew(
        _ tokens: [(id: SessionID, token: FencingToken)], in fleet: any FleetMetadataStore
    ) async {
        guard !tokens.isEmpty else { return }
        do {
            let wanted = try await fleet.renewWriters(
                tokens, lease: context.configuration.writerLease)
            for token in wanted { context.heldTokens.stop(token) }
        } catch {
            context.logger.warning(
                "writer lease renewal failed",
                metadata: ["error": "\(String(reflecting: error))"])
        }
    }

    private func handleChange(_ id: SessionID, in fleet: any FleetMetadataStore) async {
        guard let session = await registry.session(inMemory: id) else { return }
        await renew(context.heldTokens.tokens(of: id), in: fleet)
        do {
            try await session.handleChange()
        } catch {
            // The next request for the session asks the store itself.
            context.logger.debug(
                "change notification failed", metadata: ["error": "\(String(reflecting: error))"])
        }
    }
}
