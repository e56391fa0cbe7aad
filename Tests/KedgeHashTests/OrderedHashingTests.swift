import KedgeHash
import KedgeTesting
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

    private static let wait = OrderedHashing.Wait(
        timeout: .seconds(10), interval: .seconds(1), minByteCount: 10)

    private static let limits = FileHashStep.Limits()

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
        fileHashing.enter(0, end: 100)
        async let hasher = fileHashing.makeHasher(
            at: 100, waiting: Self.wait, sleep: Self.never)
        try propose(0)
        fileHashing.leave(at: 0)
        #expect(await hasher?.byteCount == 100)
    }

    @Test func `a chunk does not wait for a chunk that is not coming or has given up`() async {
        #expect(
            await fileHashing.makeHasher(at: 100, waiting: Self.wait, sleep: Self.never) == nil)
        fileHashing.enter(0, end: 100)
        async let hasher = fileHashing.makeHasher(
            at: 100, waiting: Self.wait, sleep: Self.never)
        fileHashing.leave(at: 0)
        #expect(await hasher == nil)
    }

    @Test func `a chunk waits for one that waits itself, while the first one advances`()
        async throws
    {
        for start: Int64 in [0, 100, 200] { fileHashing.enter(start, end: start + 100) }
        let intervals = Shared(0)
        async let second = fileHashing.makeHasher(
            at: 100, waiting: Self.wait, sleep: Self.never)
        let third = await fileHashing.makeHasher(at: 200, waiting: Self.wait) { [fileHashing] in
            guard $0 == Self.wait.interval else { return try await Self.never($0) }
            switch intervals.increment() {
            case 1, 2: fileHashing.noteHashed(Int64(intervals.value * 10), at: 0)
            default: fileHashing.noteHashed(29, at: 0)
            }
        }
        #expect(third == nil)
        #expect(intervals.value == 3)
        try propose(0)
        #expect(await second?.byteCount == 100)
    }

    @Test func `a chunk waits for bytes before it that are read back`() async {
        fileHashing.beginReadingBack()
        async let hasher = fileHashing.makeHasher(
            at: 200, waiting: Self.wait, sleep: Self.never)
        fileHashing.readBack(hash(ofChunks: 1))
        fileHashing.readBack(hash(ofChunks: 2))
        fileHashing.endReadingBack()
        #expect(await hasher?.byteCount == 200)
    }

    @Test func `a chunk waits while bytes before it are read back, also inside of a chunk`()
        async
    {
        fileHashing.beginReadingBack()
        let intervals = Shared(0)
        let hasher = await fileHashing.makeHasher(at: 200, waiting: Self.wait) { [fileHashing] in
            guard $0 == Self.wait.interval else { return try await Self.never($0) }
            // Advances in the first two intervals only.
            fileHashing.noteReadBack(to: Int64(min(intervals.increment(), 2) * 10))
        }
        #expect(hasher == nil)
        #expect(intervals.value == 3)
    }

    @Test func `a chunk whose writer is cancelled stops waiting at once`() async {
        fileHashing.enter(0, end: 100)
        let waiting = Gate()
        let task = Task { [fileHashing] in
            await fileHashing.makeHasher(at: 100, waiting: Self.wait) {
                waiting.open()
                try await Self.never($0)
            }
        }
        await waiting.wait()
        task.cancel()
        #expect(await task.value == nil)
    }

    @Test func `a chunk stops waiting at the timeout, although the hash advances`() async {
        fileHashing.enter(0, end: 100)
        let (gate, count) = (Gate(), Shared(Int64(0)))
        let hasher = await fileHashing.makeHasher(at: 100, waiting: Self.wait) { [fileHashing] in
            if $0 == Self.wait.timeout { return await gate.wait() }
            count.update { $0 += 10 }
            fileHashing.noteHashed(count.value, at: 0)
            if count.value >= 50 { gate.open() }
        }
        #expect(hasher == nil)
        #expect(count.value >= 50)
    }

    @Test(
        arguments: [
            (nil, .zero), (1 << 20, .milliseconds(501)), (16 << 10, .milliseconds(8)),
        ] as [(Int?, Duration)])
    func `later bytes, and first bytes from a slow link, do not wait for the hash`(
        first: Int?, age: Duration
    ) async throws {
        fileHashing.enter(0, end: 100)
        let step = FileHashStep(
            in: fileHashing, at: 100, limits: Self.limits, sleep: Self.never)
        #expect(await step.makeHasher(first: first, age: age) == nil)
        try propose(0)
        #expect(await step.makeHasher(first: first, age: age)?.byteCount == 100)
    }

    @Test(
        arguments: [(1 << 20, .milliseconds(499)), (16 << 10, .milliseconds(7))]
            as [(Int, Duration)])
    func `the first bytes from a fast link wait for the hash`(first: Int, age: Duration) async {
        fileHashing.enter(0, end: 100)
        let asked = Shared<[Duration]>([])
        let step = FileHashStep(in: fileHashing, at: 100, limits: Self.limits) { duration in
            asked.update { $0.append(duration) }
            if duration == Self.limits.timeout { try await Self.never(duration) }
        }
        #expect(await step.makeHasher(first: first, age: age) == nil)
        #expect(asked.value.contains(FileHashStep.interval))
    }
}
