import KedgeHash
import KedgeLocks
import Testing

/// R22: the file's hash, updated by chunks that arrive in parallel.
@Suite(.timeLimit(.minutes(1)))
struct HashTurnsTests {
    private static let chunk = [UInt8](repeating: 7, count: 100)
    /// Sleeps far beyond the suite's time limit, so that the timeout never ends a wait. The waiter
    /// cancels it once it is woken.
    private static let never: @Sendable (Duration) async throws -> Void = { _ in
        try await Task.sleep(for: .seconds(3600))
    }

    private let turns = HashTurns(SHA256Hasher())

    /// Returns the hash of this many chunks.
    private func hash(ofChunks count: Int) -> SHA256Hasher {
        var hasher = SHA256Hasher()
        for _ in 0..<count { hasher.update(Self.chunk) }
        return hasher
    }

    /// Updates the borrowed hash with a chunk and announces the result as a step.
    private func announce(_ index: Int) throws {
        let before = try #require(turns.borrow(at: Int64(index * 100)))
        var after = before
        after.update(Self.chunk)
        turns.announce(after, from: before)
    }

    @Test func `a hash step counts when it and all earlier steps are accepted`() throws {
        try announce(0)
        try announce(1)
        #expect(turns.hasher.byteCount == 0)
        turns.accept(stepAt: 100)
        #expect(turns.hasher.byteCount == 0)
        #expect(turns.hasStepAhead)
        turns.accept(stepAt: 0)
        #expect(turns.hasher.digest() == hash(ofChunks: 2).digest())
        #expect(!turns.hasStepAhead)
    }

    @Test func `no hash is borrowed at an offset that no step reaches`() throws {
        #expect(turns.borrow(at: 100) == nil)
        try announce(0)
        #expect(turns.borrow(at: 100) != nil)
        turns.withdraw(stepAt: 0)
        #expect(turns.borrow(at: 100) == nil)
    }

    @Test func `a hash step on top of a withdrawn attempt does not count`() throws {
        try announce(0)
        try announce(1)
        // The first chunk failed and arrives again with other bytes.
        turns.withdraw(stepAt: 0)
        let before = try #require(turns.borrow(at: 0))
        var other = before
        other.update([UInt8](repeating: 8, count: 100))
        turns.announce(other, from: before)
        turns.accept(stepAt: 100)
        turns.accept(stepAt: 0)
        #expect(turns.hasher.digest() == other.digest())
        #expect(!turns.hasStepAhead)
    }

    @Test func `no hash is borrowed during a read-back, and the steps count afterwards`() throws {
        try announce(0)
        try announce(1)
        turns.beginFollowing()
        #expect(turns.borrow(at: 0) == nil)
        turns.accept(stepAt: 0)
        turns.accept(stepAt: 100)
        #expect(turns.hasher.byteCount == 0)
        turns.follow(hash(ofChunks: 1))
        turns.endFollowing()
        #expect(turns.hasher.digest() == hash(ofChunks: 2).digest())
    }

    @Test func `a chunk waits for the chunk before it, whose step wakes it`() async throws {
        turns.enter(end: 100)
        async let borrowed = turns.borrow(at: 100, patience: .seconds(1), sleep: Self.never)
        try announce(0)
        turns.leave(end: 100)
        #expect(await borrowed?.byteCount == 100)
    }

    @Test func `a chunk does not wait for a chunk that is not coming or has given up`() async {
        #expect(await turns.borrow(at: 100, patience: .seconds(1), sleep: Self.never) == nil)
        turns.enter(end: 100)
        async let borrowed = turns.borrow(at: 100, patience: .seconds(1), sleep: Self.never)
        turns.leave(end: 100)
        #expect(await borrowed == nil)
    }

    @Test func `a chunk stops waiting at the timeout`() async {
        turns.enter(end: 100)
        let asked = Mutex<[Duration]>([])
        let borrowed = await turns.borrow(at: 100, patience: .milliseconds(3)) { patience in
            asked.withLock { $0.append(patience) }
        }
        #expect(borrowed == nil)
        #expect(asked.withLock { $0 } == [.milliseconds(3)])
    }
}
