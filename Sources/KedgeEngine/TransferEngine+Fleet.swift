internal import KedgeModel
internal import Logging

// What a node does besides answering requests because there are others.
extension TransferEngine {
    /// True when other nodes use the same stores.
    package var isInFleet: Bool { parts.fleet != nil }

    /// Renews the leases of this node's writers and hears hints of other nodes until the task is cancelled.
    package func runInFleet() async {
        guard let fleet = parts.fleet else { return }
        await withTaskGroup { group in
            group.addTask { await self.renewLeasesRegularly(in: fleet) }
            group.addTask {
                for await id in fleet.hints() { await self.heed(id, in: fleet) }
            }
        }
    }

    private func renewLeasesRegularly(in fleet: any FleetMetadataStore) async {
        while !Task.isCancelled {
            do {
                try await parts.timer.sleep(for: configuration.writerLease / 4)
            } catch {
                return
            }
            await renew(parts.leases.tokens(), in: fleet)
            do {
                try await renewFinalizes()
                // Not left to the sweep, which comes once a minute: a client waits for it.
                try await takeOverFinalizes()
            } catch {
                logger.warning(
                    "leases of finalizes were not renewed",
                    metadata: ["error": "\(String(reflecting: error))"])
            }
        }
    }

    /// A node that cannot renew goes on: the commit finds out whether somebody has taken over.
    private func renew(
        _ tokens: [(id: SessionID, token: WriterToken)], in fleet: any FleetMetadataStore
    ) async {
        guard !tokens.isEmpty else { return }
        do {
            let wanted = try await fleet.renewWriters(tokens, lease: configuration.writerLease)
            for token in wanted { parts.leases.stop(token) }
        } catch {
            logger.warning(
                "leases were not renewed", metadata: ["error": "\(String(reflecting: error))"])
        }
    }

    private func heed(_ id: SessionID, in fleet: any FleetMetadataStore) async {
        guard let session = await registry.session(inMemory: id) else { return }
        await renew(parts.leases.tokens(of: id), in: fleet)
        do {
            try await session.heed()
        } catch {
            // The next request of the session asks the store itself.
            logger.debug(
                "a hint was of no use", metadata: ["error": "\(String(reflecting: error))"])
        }
    }
}
