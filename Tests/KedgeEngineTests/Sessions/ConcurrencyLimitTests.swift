import KedgeEngine
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct ConcurrencyLimitTests {
    @Test func `as many bodies run at once as the limit, and all of them in the end`() async throws
    {
        let limit = ConcurrencyLimit(2)
        let (gate, running, most) = (Gate(), Shared(0), Shared(0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<10 {
                group.addTask {
                    try await limit.withPermit {
                        let count = running.increment()
                        most.update { $0 = max($0, count) }
                        await gate.wait()
                        running.update { $0 -= 1 }
                    }
                }
            }
            // Two are inside, so the limit is used in full; the others wait outside.
            #expect(try await eventually { gate.arrivalCount >= 2 })
            gate.open()
            try await group.waitForAll()
        }
        #expect(most.value == 2)
        #expect(gate.arrivalCount == 10)
    }

    @Test func `a body that fails returns its permit`() async throws {
        let limit = ConcurrencyLimit(1)
        await #expect(throws: CancellationError.self) {
            try await limit.withPermit { throw CancellationError() }
        }
        #expect(try await limit.withPermit { true })
    }
}
