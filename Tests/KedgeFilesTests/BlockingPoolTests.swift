import Dispatch
import KedgeFiles
import KedgeLocks
import Testing

@Suite(.timeLimit(.minutes(1)))
struct BlockingPoolTests {
    private struct Failure: Error, Equatable { let number: Int }

    @Test func `a blocking pool returns results and errors to the caller`() async throws {
        let pool = BlockingPool(threadCount: 2)
        #expect(try await pool.run { 7 } == 7)
        await #expect(throws: Failure(number: 3)) {
            try await pool.run { () throws -> Int in throw Failure(number: 3) }
        }
        let pending = pool.start { () throws -> Int in throw Failure(number: 4) }
        await #expect(throws: Failure(number: 4)) { try await pending.value() }
    }

    @Test func `work starts in the order of its submission`() async throws {
        let pool = BlockingPool(threadCount: 1)
        let seen = Mutex<[Int]>([])
        let all = (0..<200).map { number in
            pool.start { seen.withLock { $0.append(number) } }
        }
        for pending in all { try await pending.value() }
        #expect(seen.withLock { $0 } == Array(0..<200))
    }

    @Test(arguments: [1, 2, 5])
    func `a blocking pool runs as much work at once as it has threads`(threadCount: Int)
        async throws
    {
        let pool = BlockingPool(threadCount: threadCount)
        #expect(pool.threadCount == threadCount)
        let running = Mutex(0)
        let highest = Mutex(0)
        let arrived = DispatchSemaphore(value: 0)
        let leave = DispatchSemaphore(value: 0)
        let all = (0..<threadCount * 3).map { _ in
            pool.start {
                let now = running.withLock { count in
                    count += 1
                    return count
                }
                highest.withLock { $0 = max($0, now) }
                arrived.signal()
                leave.wait()
                running.withLock { $0 -= 1 }
            }
        }
        // All threads are taken although no work has ended.
        for _ in 0..<threadCount {
            let isThere = arrived.wait(timeout: .now() + 30) == .success
            #expect(isThere)
        }
        for _ in all { leave.signal() }
        for pending in all { try await pending.value() }
        #expect(highest.withLock { $0 } == threadCount)
    }

    @Test func `a pending result reaches every caller, before and after the work ends`()
        async throws
    {
        let pool = BlockingPool(threadCount: 1)
        let gate = DispatchSemaphore(value: 0)
        let pending = pool.start {
            gate.wait()
            return 7
        }
        let early = (0..<3).map { _ in Task { try await pending.value() } }
        gate.signal()
        for task in early { #expect(try await task.value == 7) }
        #expect(try await pending.value() == 7)
    }

    @Test func `work runs to its end although its task is cancelled`() async throws {
        let pool = BlockingPool(threadCount: 1)
        let gate = DispatchSemaphore(value: 0)
        let task = Task {
            try await pool.run {
                gate.wait()
                return 7
            }
        }
        task.cancel()
        gate.signal()
        #expect(try await task.value == 7)
    }

    @Test func `accepted work is done although the pool was released`() async throws {
        var pool: BlockingPool? = BlockingPool(threadCount: 2)
        let all = (0..<50).compactMap { number in pool?.start { number } }
        pool = nil
        var sum = 0
        for pending in all { sum += try await pending.value() }
        #expect(sum == (0..<50).reduce(0, +))
    }

    /// Memory must not grow while the pool is never idle.
    @Test func `finished work is released while other work waits`() async throws {
        final class Token: Sendable {}
        let pool = BlockingPool(threadCount: 1)
        let gate = DispatchSemaphore(value: 0)
        let hold = pool.start { gate.wait() }
        var token: Token? = Token()
        weak let watched = token
        let first = pool.start { [token] in _ = token.map { ObjectIdentifier($0) } }
        let hasBegun = DispatchSemaphore(value: 0)
        let second = pool.start {
            hasBegun.signal()
            gate.wait()
        }
        let third = pool.start {}
        token = nil
        gate.signal()
        try await hold.value()
        try await first.value()
        // One piece of work runs and one waits, as always on a busy server.
        let isBusy = hasBegun.wait(timeout: .now() + 30) == .success
        #expect(isBusy)
        #expect(watched == nil)
        gate.signal()
        try await second.value()
        try await third.value()
    }
}
