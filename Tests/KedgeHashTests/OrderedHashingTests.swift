import KedgeHash
import KedgeLocks
import Testing

/// R22: the file's hash, updated by chunks that arrive in parallel.
@Suite(.timeLimit(.minutes(1)))
struct OrderedHashingTests {
    private static let chunk = [UInt8](repeating: 7, count: 100)
    /// Sleeps far beyond the suite's time limit, so that the timeout never ends a wait. The waiter
    /// cancels it once it is woken.
    private static let never: @Sendable (Duration) async throws -> Void = { _ in
        try await Task.sleep(for: .seconds(3600))
    }

    private let fileHashing = OrderedHashing(SHA256Hasher())

    /// Returns the hash of this many chunks.
    private func hash(ofChunks count: Int) -> SHA256Hasher {
        var hasher = SHA256Hasher()
        for _ in 0..<count { hasher.update(Self.chunk) }
        return hasher
    }

    /// Updates a copy of the hash with a chunk and proposes the step.
    private func propose(_ index: Int) throws {
        let before = try #require(fileHashing.makeHasher(at: Int64(index * 100)))
        var after = before
        after.update(Self.chunk)
        fileHashing.propose(after, from: before)
    }

    @Test func `a hash step counts when it and all earlier steps are accepted`() throws {
        try propose(0)
        try propose(1)
        #expect(fileHashing.hasher.byteCount == 0)
        fileHashing.accept(stepAt: 100)
        #expect(fileHashing.hasher.byteCount == 0)
        #expect(fileHashing.hasStepAhead)
        fileHashing.accept(stepAt: 0)
        #expect(fileHashing.hasher.digest() == hash(ofChunks: 2).digest())
        #expect(!fileHashing.hasStepAhead)
    }

    @Test func `no hash is borrowed at an offset that no step reaches`() throws {
        #expect(fileHashing.makeHasher(at: 100) == nil)
        try propose(0)
        #expect(fileHashing.makeHasher(at: 100) != nil)
        fileHashing.rollBack(stepAt: 0)
        #expect(fileHashing.makeHasher(at: 100) == nil)
    }

    @Test func `a hash step on top of a withdrawn attempt does not count`() throws {
        try propose(0)
        try propose(1)
        // The first chunk failed and arrives again with other bytes.
        fileHashing.rollBack(stepAt: 0)
        let before = try #require(fileHashing.makeHasher(at: 0))
        var other = before
        other.update([UInt8](repeating: 8, count: 100))
        fileHashing.propose(other, from: before)
        fileHashing.accept(stepAt: 100)
        fileHashing.accept(stepAt: 0)
        #expect(fileHashing.hasher.digest() == other.digest())
        #expect(!fileHashing.hasStepAhead)
    }

    @Test func `no hash is borrowed during a read-back, and the steps count afterwards`() throws {
        try propose(0)
        try propose(1)
        fileHashing.beginReadingBack()
        #expect(fileHashing.makeHasher(at: 0) == nil)
        fileHashing.accept(stepAt: 0)
        fileHashing.accept(stepAt: 100)
        #expect(fileHashing.hasher.byteCount == 0)
        fileHashing.readBack(hash(ofChunks: 1))
        fileHashing.endReadingBack()
        #expect(fileHashing.hasher.digest() == hash(ofChunks: 2).digest())
    }

    @Test func `a chunk waits for the chunk before it, whose step wakes it`() async throws {
        fileHashing.enter(end: 100)
        async let borrowed = fileHashing.makeHasher(
            at: 100, timeout: .seconds(1), sleep: Self.never)
        try propose(0)
        fileHashing.leave(end: 100)
        #expect(await borrowed?.byteCount == 100)
    }

    @Test func `a chunk does not wait for a chunk that is not coming or has given up`() async {
        #expect(
            await fileHashing.makeHasher(at: 100, timeout: .seconds(1), sleep: Self.never) == nil)
        fileHashing.enter(end: 100)
        async let borrowed = fileHashing.makeHasher(
            at: 100, timeout: .seconds(1), sleep: Self.never)
        fileHashing.leave(end: 100)
        #expect(await borrowed == nil)
    }

    @Test func `a chunk stops waiting at the timeout`() async {
        fileHashing.enter(end: 100)
        let asked = Mutex<[Duration]>([])
        let borrowed = await fileHashing.makeHasher(at: 100, timeout: .milliseconds(3)) { timeout in
            asked.withLock { $0.append(timeout) }
        }
        #expect(borrowed == nil)
        #expect(asked.withLock { $0 } == [.milliseconds(3)])
    }

    @Test(arguments: [nil, .milliseconds(250), .seconds(1)] as [Duration?])
    func `later bytes, and first bytes from a slow link, do not wait for the hash`(
        age: Duration?
    ) async throws {
        fileHashing.enter(end: 100)
        let step = FileHashStep(in: fileHashing, at: 100, timeout: .seconds(1), sleep: Self.never)
        #expect(await step.makeHasher(age: age) == nil)
        try propose(0)
        #expect(await step.makeHasher(age: age)?.byteCount == 100)
    }

    @Test func `the first bytes from a fast link wait for the hash, up to its timeout`() async {
        fileHashing.enter(end: 100)
        let asked = Mutex<[Duration]>([])
        let step = FileHashStep(in: fileHashing, at: 100) { timeout in
            asked.withLock { $0.append(timeout) }
        }
        #expect(await step.makeHasher(age: .milliseconds(249)) == nil)
        #expect(asked.withLock { $0 } == [FileHashStep.defaultTimeout])
    }
}
