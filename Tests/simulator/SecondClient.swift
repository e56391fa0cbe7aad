import KedgeClient
import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting

/// A second client of the same sessions: it sends chunks that the first one sends too, appends,
/// finalizes too early, and may cancel.
struct SecondClient: Sendable {
    let world: World
    let server: ServerMachine
    let history: History
    let content: [UInt8]

    /// Starts the client, which ends when the weather calms down.
    func begin() {
        guard world.weather.secondClientRequests != nil else { return }
        // The task ends with the weather.
        Task.detached { [self] in
            while let mean = world.weather.secondClientRequests {
                try await world.scheduler.sleep(for: world.draw(around: mean))
                // Refusals and lost connections are expected; the world checks the outcome.
                try? await sendRequest()
            }
        }
    }

    private func sendRequest() async throws {
        guard let metadata = server.process?.metadata else { return }
        let sessions = try await metadata.survivor.unfinishedSessions()
            .sorted { $0.record.id.text < $1.record.id.text }
        guard !sessions.isEmpty else { return }
        let record = sessions[world.draw(0...sessions.count - 1)].record
        let link = SimulatedLink(world, server: server)
        let api = ServerAPI(baseURL: SimulatedLink.address, token: nil, transport: link)
        switch world.draw(0...9) {
        case 0...3: try await put(record, api)
        case 4...5: try await append(record)
        case 6: _ = try await api.sessionStatus(record.id, chunkCount: 100)
        case 9 where world.weather.cancels:
            history.released(record.id)
            try await api.deleteSession(record.id)
        default:
            _ = try await api.finalize(record.id, digest: SHA256Hasher.digest(of: content))
        }
    }

    /// Appends as the other protocols do, while the first client sends chunks.
    private func append(_ record: SessionRecord) async throws {
        guard let engine = server.process?.engine else { return }
        let offset = Int(try await engine.contiguousOffset(of: record.id, owner: .anonymous))
        guard offset < content.count else { return }
        let count = world.draw(1...content.count - offset)
        let breaksAfter = world.draw(0...3) == 0 ? world.draw(0...count) : nil
        let body = DirectBody(
            bytes: Array(content[offset..<offset + count]), limit: breaksAfter, world: world)
        _ = try await engine.append(
            AppendPut(offset: Int64(offset), checksum: nil, completes: false), to: record.id,
            owner: .anonymous, body: body)
    }

    private func put(_ record: SessionRecord, _ api: ServerAPI) async throws {
        guard let count = record.layout.chunkCount, count > 0 else { return }
        let index = world.draw(0...count - 1)
        guard let range = record.layout.range(ofChunk: index) else { return }
        let bytes = Array(content[Int(range.start)..<Int(range.end)])
        _ = try await api.putChunk(
            index, of: record.id, bytes: range, total: Int64(content.count),
            digest: SHA256Hasher.digest(of: bytes), body: .bytes(bytes), onBytesSent: { _ in })
    }
}
