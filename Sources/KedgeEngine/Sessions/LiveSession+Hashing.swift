internal import KedgeFiles
internal import KedgeModel

extension LiveSession {
    /// Lets the whole-file hash catch up with the committed prefix in the background.
    func followPrefix() async {
        let end = ledger.committedPrefixEnd
        // This node no longer needs the bytes that the hash has passed.
        await staging?.release(below: await prefix.offset)
        await prefix.readBack(to: end) { [weak self] in
            guard let self else { throw EngineError(.sessionClosed) }
            return try await self.stagingArea()
        } chunk: { [weak self] offset in
            await self?.committedChunk(at: offset)
        } save: { [weak self] checkpoint in
            try await self?.save(checkpoint)
        }
    }

    private func committedChunk(at offset: Int64) -> StoredChunk? {
        let layout = ledger.record.layout
        let index = layout.index(ofByteAt: offset)
        guard let range = layout.range(ofChunk: index), let digest = ledger.digest(ofChunk: index)
        else { return nil }
        return StoredChunk(index: index, range: range, digest: digest)
    }

    private func save(_ prefix: HashCheckpoint) async throws {
        try await context.metadata.savePrefix(
            prefix, of: id, knowing: context.fleet == nil ? nil : ledger.revision)
    }
}
