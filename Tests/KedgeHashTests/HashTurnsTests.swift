import KedgeHash
import KedgeLocks
import Testing

/// R22: the file's hash, carried on by chunks that come side by side.
@Suite(.timeLimit(.minutes(1))) struct `Turns in the hash of a file` {
    private static let chunk = [UInt8](repeating: 7, count: 100)
    /// A patience that does not end: only what the test is about can wake. Far beyond the suite's limit, and
    /// cancelled by whoever is woken.
    private static let never: @Sendable (Duration) async throws -> Void = { _ in
        try await Task.sleep(for: .seconds(3600))
    }

    private let turns = HashTurns(SHA256Hasher())

    /// The hash of so many chunks.
    private func hash(ofChunks count: Int) -> SHA256Hasher {
        var hasher = SHA256Hasher()
        for _ in 0..<count { hasher.update(Self.chunk) }
        return hasher
    }

    /// Carries on what was borrowed over a chunk, and announces it.
    private func announce(_ index: Int) throws {
        let before = try #require(turns.borrow(at: Int64(index * 100)))
        var after = before
        after.update(Self.chunk)
        turns.announce(after, from: before)
    }

    @Test func `a step counts when it and all before it were accepted`() throws {
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

    @Test func `nobody borrows where the hash does not come`() throws {
        #expect(turns.borrow(at: 100) == nil)
        try announce(0)
        #expect(turns.borrow(at: 100) != nil)
        turns.withdraw(stepAt: 0)
        #expect(turns.borrow(at: 100) == nil)
    }

    @Test func `a step upon another attempt's bytes does not count`() throws {
        try announce(0)
        try announce(1)
        // The first chunk failed and comes again with other bytes.
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

    @Test func `while somebody reads back nobody borrows, and afterwards the steps count`() throws {
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

    @Test func `a chunk waits for the one before it, and is woken by its step`() async throws {
        turns.enter(end: 100)
        async let borrowed = turns.borrow(at: 100, patience: .seconds(1), sleep: Self.never)
        try announce(0)
        turns.leave(end: 100)
        #expect(await borrowed?.byteCount == 100)
    }

    @Test func `a chunk does not wait for one that is not coming, or that gave up`() async {
        #expect(await turns.borrow(at: 100, patience: .seconds(1), sleep: Self.never) == nil)
        turns.enter(end: 100)
        async let borrowed = turns.borrow(at: 100, patience: .seconds(1), sleep: Self.never)
        turns.leave(end: 100)
        #expect(await borrowed == nil)
    }

    @Test func `patience ends`() async {
        turns.enter(end: 100)
        let asked = Mutex<[Duration]>([])
        let borrowed = await turns.borrow(at: 100, patience: .milliseconds(3)) { patience in
            asked.withLock { $0.append(patience) }
        }
        #expect(borrowed == nil)
        #expect(asked.withLock { $0 } == [.milliseconds(3)])
    }
}
