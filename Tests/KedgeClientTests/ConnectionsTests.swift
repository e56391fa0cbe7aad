import HTTPTypes
import KedgeLocks
import KedgeModel
import Testing

@testable import KedgeClient

/// R126: as many chunks in flight as were set, and never one more.
@Suite(.timeLimit(.minutes(1)))
struct ConnectionsTests {
    private let scene: Scene
    private let bytes = Scene.bytes(1_500_000)

    init() throws { scene = try Scene() }

    /// Requests that move chunks and are under way when as many wait as will.
    private func arrivals(
        _ connections: Int?, begin: (TransferClient) async throws -> TransferID
    ) async throws -> Int {
        let gate = Gate()
        scene.plan(.wait(gate), count: 1000) {
            $0.path.contains("/chunks/") || $0.fields[.range] != nil
        }
        let client = try await scene.client { $0.connections = connections }
        let id = try await begin(client)
        let run = Task { try await client.run(id) }
        let count = { gate.arrivals.withLock { $0 } }
        _ = try await eventually { count() >= min(connections ?? 4, 8) }
        // One too many would follow at once.
        try await Task.sleep(for: .milliseconds(200))
        let held = count()
        gate.open()
        #expect(try await run.value.state == .completed)
        return held
    }

    @Test(arguments: [nil, 1, 3, 7])
    func `an upload has as many chunks in flight as are set`(connections: Int?) async throws {
        let path = try scene.write("source.bin", bytes)
        let held = try await arrivals(connections) { try await $0.enqueueUpload(path: path) }
        #expect(held == connections ?? 4)
    }

    @Test(arguments: [nil, 1, 3, 7])
    func `a download has as many chunks in flight as are set`(connections: Int?) async throws {
        let file = scene.addFile(bytes)
        let held = try await arrivals(connections) {
            try await $0.enqueueDownload(.file(file), to: scene.path("out.bin"))
        }
        #expect(held == connections ?? 4)
    }

    @Test func `the server's limit counts`() async throws {
        let path = try scene.write("source.bin", bytes)
        let held = try await arrivals(20) { client in
            try await client.enqueueUpload(path: path)
        }
        #expect(held == 8)
    }
}
