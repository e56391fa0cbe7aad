import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct HealthTests {
    /// Counts the health checks of the stores.
    private func count(on node: Node) -> Shared<Int> {
        let tries = Shared(0)
        node.metadata.before { call in
            if case .checkHealth = call { _ = tries.increment() }
        }
        return tries
    }

    @Test func `the stores are checked once a second however often callers ask`() async throws {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        let tries = count(on: node)
        for _ in 0..<100 { try await node.engine.checkHealth() }
        #expect(tries.value == 1)
        fixture.timer.advance(by: .milliseconds(999))
        try await node.engine.checkHealth()
        #expect(tries.value == 1)
        fixture.timer.advance(by: .milliseconds(1))
        for _ in 0..<100 { try await node.engine.checkHealth() }
        #expect(tries.value == 2)
    }

    @Test func `concurrent callers share the result of one check`() async throws {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        let (tries, hasBegun, gate) = (Shared(0), Gate(), Gate())
        node.metadata.before { call in
            guard case .checkHealth = call else { return }
            _ = tries.increment()
            hasBegun.open()
            await gate.wait()
            throw MetadataError.failed("no room")
        }
        let first = Task { try await node.engine.checkHealth() }
        await hasBegun.wait()
        // A caller that is cancelled does not cancel the check for the others.
        first.cancel()
        let others = (0..<20).map { _ in Task { try await node.engine.checkHealth() } }
        gate.open()
        for caller in others + [first] {
            await #expect(throws: EngineError.self) { try await caller.value }
        }
        #expect(tries.value == 1)
    }

    @Test func `a failed check is repeated after a second`() async throws {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        let tries = Shared(0)
        node.metadata.before { call in
            guard case .checkHealth = call, tries.increment() == 1 else { return }
            throw MetadataError.failed("no room")
        }
        for _ in 0..<2 {
            await #expect(throws: EngineError.self) { try await node.engine.checkHealth() }
        }
        fixture.timer.advance(by: .seconds(1))
        try await node.engine.checkHealth()
        #expect(tries.value == 2)
    }

    @Test func `later callers are refused while a check hangs`() async throws {
        let fixture = try EngineEnvironment()
        let node = try await fixture.start()
        let (hasBegun, gate) = (Gate(), Gate())
        node.metadata.before { call in
            guard case .checkHealth = call else { return }
            hasBegun.open()
            await gate.wait()
        }
        let first = Task { try await node.engine.checkHealth() }
        await hasBegun.wait()
        fixture.timer.advance(by: .seconds(10))
        await #expect(throws: EngineError(.unavailable)) { try await node.engine.checkHealth() }
        gate.open()
        try await first.value
        try await node.engine.checkHealth()
    }
}
