import Glibc
import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// Concatenation makes a final upload of partial uploads.
@Suite(.timeLimit(.minutes(1))) struct ConcatenationTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    /// Makes complete partial uploads of these sizes, which are no files yet.
    private func parts(
        _ sizes: [Int], on node: some EngineHolder, sized: Bool = true
    ) async throws -> [Upload] {
        var parts: [Upload] = []
        for (index, size) in sizes.enumerated() {
            let part = try await node.begin(
                sampleBytes(size, seed: UInt64(index)), sized: sized)
            _ = try await node.append(part.content, to: part, at: 0, completes: true)
            parts.append(part)
        }
        return parts
    }

    /// Creates a final upload of the partial uploads.
    private func whole(
        of parts: [Upload], on node: some EngineHolder, size: Int64? = nil,
        owner: OwnerID = .tester, key: String? = nil
    ) async throws -> SessionID {
        try await node.engine.createSession(
            NewSession(
                fileName: "whole.bin", fileSize: size, chunkSize: 1000, sourceIDs: parts.map(\.id)),
            owner: owner, idempotencyKey: key.map { IdempotencyKey(key: $0, fingerprint: $0) }
        ).sessionId
    }

    private func concatenate(
        _ parts: [Upload], on node: some EngineHolder, key: String? = nil
    ) async throws -> FileRecord {
        try await node.made(try await whole(of: parts, on: node, key: key))
    }

    /// Starts a copy of the partial upload that stops half-way until the gate opens.
    private func stalled(
        _ part: Upload, on node: Node
    ) async -> (gate: ThreadGate, copy: Task<FileRecord, any Error>) {
        let gate = ThreadGate()
        fixture.disk.apply { call, count in
            if call == .read, count == 3 { gate.wait() }
            return nil
        }
        let copy = Task { try await concatenate([part], on: node) }
        await gate.hasArrived.wait()
        return (gate, copy)
    }

    private func expectWaiting(
        _ id: SessionID, on node: some EngineHolder, byteCount: Int64?
    ) async throws {
        let concatenation = try await node.engine.concatenate(id, owner: .tester)
        guard case .waiting(byteCount) = concatenation else {
            Issue.record("it is \(concatenation)")
            return
        }
    }

    @Test(arguments: [
        [1], [2500], [1000, 1000], [999, 1, 1000], [0, 700, 0, 2300, 4000], [0], [0, 0],
    ])
    func `a final upload has the bytes of its partial uploads in their order`(sizes: [Int])
        async throws
    {
        let node = try await fixture.start()
        let parts = try await parts(sizes, on: node)
        let whole = try await concatenate(parts, on: node)
        let other = try await concatenate(parts.reversed(), on: node)
        #expect(try await node.content(of: whole) == parts.flatMap(\.content))
        #expect(try await node.content(of: other) == parts.reversed().flatMap(\.content))
        // The partial uploads are unchanged.
        for part in parts {
            let status = try await node.status(of: part)
            #expect(status.state == .open)
            #expect(status.receivedBytes == Int64(part.content.count))
        }
        let chunks = try await node.engine.chunkDigests(of: whole)
        #expect(chunks.count == (sizes.reduce(0, +) + 999) / 1000)
    }

    @Test func `a partial upload may have had no size until its end`() async throws {
        let node = try await fixture.start()
        let parts = try await parts([1300, 200], on: node, sized: false)
        let whole = try await concatenate(parts, on: node)
        #expect(try await node.content(of: whole) == parts.flatMap(\.content))
    }

    @Test func `a partial upload may be a file already`() async throws {
        let node = try await fixture.start()
        let parts = try await parts([1300, 200], on: node)
        _ = try await node.finish(parts[0])
        let whole = try await concatenate(parts, on: node)
        #expect(try await node.content(of: whole) == parts.flatMap(\.content))
    }

    @Test func `a partial upload whose last bytes are not committed as a chunk is complete`()
        async throws
    {
        let node = try await fixture.start()
        let part = try await node.begin(sampleBytes(1300), sized: false)
        _ = try await node.append(part.content, to: part, at: 0)
        node.metadata.before { call in
            if call == .commit { throw MetadataError.unavailable("planned") }
        }
        await #expect(throws: EngineError(.unavailable)) {
            try await node.append([], to: part, at: 1300, completes: true)
        }
        node.metadata.before(nil)
        let whole = try await concatenate([part], on: node)
        #expect(try await node.content(of: whole) == part.content)
    }

    @Test func `a final upload waits for incomplete partial uploads and fails with missing ones`()
        async throws
    {
        let node = try await fixture.start()
        let ready = try await parts([500], on: node)[0]
        let short = try await node.begin(sampleBytes(2500))
        _ = try await node.append(short.content.prefix(1300), to: short, at: 0)
        let unsized = try await node.begin(sampleBytes(10), sized: false)
        try await expectWaiting(
            try await whole(of: [ready, short], on: node), on: node, byteCount: 3000)
        try await expectWaiting(
            try await whole(of: [ready, unsized], on: node), on: node, byteCount: nil)
        let gone = try await parts([500], on: node)[0]
        let late = try await whole(of: [ready, gone], on: node)
        try await node.engine.cancelSession(gone.id, owner: gone.owner)
        await #expect(throws: EngineError(.sessionExpired)) {
            try await node.engine.concatenate(late, owner: .tester)
        }
        await #expect(throws: EngineError(.sessionNotFound)) {
            try await node.engine.concatenate(late, owner: .stranger)
        }
        let foreign = try await whole(of: [ready], on: node, owner: .stranger)
        await #expect(throws: EngineError(.sessionExpired)) {
            try await node.engine.concatenate(foreign, owner: .stranger)
        }
        for wrong in [[], [ready, ready]] {
            await #expect(throws: EngineError(.badRequest)) { try await whole(of: wrong, on: node) }
        }
    }

    @Test func `a final upload fails when the file of a partial upload was deleted`() async throws {
        let node = try await fixture.start()
        let part = try await parts([500], on: node)[0]
        let file = try await node.finish(part)
        try await node.engine.deleteFile(file.id, owner: file.owner)
        let late = try await whole(of: [part], on: node)
        await #expect(throws: EngineError(.sessionExpired)) {
            try await node.engine.concatenate(late, owner: .tester)
        }
    }

    @Test func `partial uploads that are too large together are refused`() async throws {
        let fixture = try EngineEnvironment { $0.maxFileSize = 2500 }
        let node = try await fixture.start()
        let parts = try await parts([1300, 1201], on: node)
        let large = try await whole(of: parts, on: node)
        await #expect(throws: EngineError(.fileTooLarge)) {
            try await node.engine.concatenate(large, owner: .tester)
        }
    }

    @Test func `a final upload takes bytes from its partial uploads alone`() async throws {
        let node = try await fixture.start()
        let part = try await node.begin(sampleBytes(1300))
        let id = try await whole(of: [part], on: node, size: 1300)
        let alien = Upload(
            id: id, owner: .tester, content: sampleBytes(1300, seed: 7), chunkSize: 1000)
        await #expect(throws: EngineError(.uploadIsFinal)) { try await node.put(0, of: alien) }
        await #expect(throws: EngineError(.uploadIsFinal)) {
            try await node.append([1, 2, 3], to: alien, at: 0)
        }
        await #expect(throws: EngineError(.missingChunks)) { try await node.finish(alien) }
        _ = try await node.append(part.content, to: part, at: 0)
        #expect(try await node.content(of: try await node.made(id)) == part.content)
    }

    @Test func `concatenation starts when the last partial upload completes`() async throws {
        let node = try await fixture.start()
        let part = try await node.begin(sampleBytes(1300))
        let id = try await whole(of: [part], on: node)
        try await expectWaiting(id, on: node, byteCount: 1300)
        _ = try await node.append(part.content, to: part, at: 0)
        await node.engine.completedPartialUpload(part.id, owner: part.owner)
        try await node.untilCompleted(id)
    }

    @Test func `concatenation also starts when the last partial upload becomes a file`()
        async throws
    {
        let node = try await fixture.start()
        let part = try await node.begin(sampleBytes(1300))
        let id = try await whole(of: [part], on: node)
        try await expectWaiting(id, on: node, byteCount: 1300)
        _ = try await node.append(part.content, to: part, at: 0)
        _ = try await node.finish(part)
        try await node.untilCompleted(id)
    }

    @Test func `the sweep starts a concatenation without a request, also after a restart`()
        async throws
    {
        var node = try await fixture.start()
        let part = try await node.begin(sampleBytes(1300))
        let id = try await whole(of: [part], on: node)
        _ = try await node.append(part.content, to: part, at: 0)
        node = try await node.restart()
        try await node.engine.sweep()
        try await node.untilCompleted(id)
    }

    @Test func `a damaged chunk of a partial upload makes no file and can be sent again`()
        async throws
    {
        let node = try await fixture.start()
        let part = try await parts([2500], on: node)[0]
        let id = try await whole(of: [part], on: node)
        try fixture.flipByte(at: 1700, of: part.id)
        let isInvalidated = try await eventually(within: .seconds(30)) {
            if try await node.status(of: part).receivedBytes < 2500 { return true }
            _ = try await node.engine.concatenate(id, owner: .tester)
            return false
        }
        #expect(isInvalidated)
        #expect(try await node.status(of: part).received.indexes.elementsEqual([0, 2]))
        try await node.put(1, of: part)
        #expect(try await node.content(of: try await node.made(id)) == part.content)
    }

    @Test func `a truncated partial upload keeps the chunks before its end`() async throws {
        let node = try await fixture.start()
        let part = try await parts([3500], on: node)[0]
        let id = try await whole(of: [part], on: node)
        try Damage.cut(fixture.stagingPath(part), to: 1100)
        for lost in [1, 2, 3] {
            let isInvalidated = try await eventually(within: .seconds(30)) {
                let received = try await node.status(of: part).received
                if !received.indexes.contains(lost) { return true }
                _ = try await node.engine.concatenate(id, owner: .tester)
                return false
            }
            #expect(isInvalidated)
            #expect(try await node.status(of: part).received.indexes.contains(0))
            try await node.put(lost, of: part)
        }
        #expect(try await node.content(of: try await node.made(id)) == part.content)
    }

    @Test func `bytes of a partial upload that only the page cache has wrong cost no chunk`()
        async throws
    {
        let node = try await fixture.start()
        let part = try await parts([2500], on: node)[0]
        let path = fixture.stagingPath(part)
        try Damage.flip(path, at: 1200)
        let isRepaired = Shared(false)
        fixture.disk.whenDroppingCached {
            isRepaired.update { isDone in
                if !isDone { #expect(throws: Never.self) { try Damage.flip(path, at: 1200) } }
                isDone = true
            }
        }
        node.metadata.before { call in
            if case .invalidateDamagedChunks = call { Issue.record("a sound chunk is invalidated") }
        }
        let file = try await concatenate([part], on: node)
        #expect(isRepaired.value)
        #expect(try await node.content(of: file) == part.content)
    }

    @Test func `requests alone keep a final upload and its partial uploads alive`() async throws {
        let node = try await fixture.start()
        let lifetime = node.engine.configuration.sessionLifetime
        let ready = try await parts([500], on: node)[0]
        let slow = try await node.begin(sampleBytes(500))
        let id = try await whole(of: [ready, slow], on: node)
        // From here on a partial upload without a byte lives as long as any other.
        try await expectWaiting(id, on: node, byteCount: 1000)
        for _ in 0..<3 {
            fixture.clock.advance(by: lifetime / 2)
            try await expectWaiting(id, on: node, byteCount: 1000)
        }
        for _ in 0..<2 {
            fixture.clock.advance(by: lifetime / 2 + .seconds(1))
            try await node.engine.sweep()
        }
        await #expect(throws: EngineError(.sessionExpired)) {
            try await node.engine.concatenate(id, owner: .tester)
        }
    }

    @Test func `a promised finalize does not keep a final upload whose partial uploads expired`()
        async throws
    {
        var node = try await fixture.start()
        let parts = try await parts([1300], on: node)
        let id = try await whole(of: parts, on: node)
        // The lease is left as after a crash during the concatenation.
        let lease = WorkLease(
            holder: "gone", now: fixture.clock.now(),
            until: fixture.clock.now().advanced(by: .seconds(15)))
        #expect(try await node.metadata.takeFinalize(of: id, expecting: nil, lease: lease))
        node = try await node.restart()
        fixture.clock.advance(by: node.engine.configuration.sessionLifetime + .seconds(60))
        for _ in 0..<2 { try await node.engine.sweep() }
        await #expect(throws: EngineError(.sessionExpired)) {
            try await node.engine.sessionStatus(id, owner: .tester)
        }
        fixture.clock.advance(by: node.engine.configuration.expiryGrace + .seconds(60))
        try await node.engine.sweep()
        #expect(try await node.bytes.stagingKeys() == [])
    }

    @Test func `a final upload with all its bytes does not need its partial uploads any more`()
        async throws
    {
        var node = try await fixture.start()
        let parts = try await parts([1300, 400], on: node)
        let id = try await whole(of: parts, on: node)
        let attempts = Shared(0)
        node.metadata.before { call in
            if call == .beginFinalize {
                _ = attempts.increment()
                throw MetadataError.unavailable("planned")
            }
        }
        let engine = node.engine
        let isAttempted = try await eventually(within: .seconds(30)) {
            if attempts.value > 0 { return true }
            _ = try await engine.concatenate(id, owner: .tester)
            return false
        }
        #expect(isAttempted)
        for part in parts { try await node.engine.cancelSession(part.id, owner: part.owner) }
        node = try await node.restart()
        fixture.clock.advance(by: node.engine.configuration.finalizeLease)
        #expect(
            try await node.content(of: try await node.made(id)) == parts.flatMap(\.content))
    }

    @Test func `concurrent concatenations of the same partial uploads do not disturb each other`()
        async throws
    {
        let node = try await fixture.start()
        let parts = try await parts([1300, 700, 2500], on: node)
        let lists = [parts, parts.reversed(), [parts[1], parts[0]], [parts[2]]]
        try await withThrowingTaskGroup { group in
            for list in lists {
                group.addTask {
                    let file = try await concatenate(list, on: node)
                    #expect(try await node.content(of: file) == list.flatMap(\.content))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test
    func `one idempotency key gives one final upload, also for concurrent and later requests`()
        async throws
    {
        var node = try await fixture.start()
        let parts = try await parts([1300, 700, 2500], on: node)
        let files = try await withThrowingTaskGroup { [node] group in
            for _ in 0..<4 {
                group.addTask { try await concatenate(parts, on: node, key: "k").id }
            }
            return try await group.reduce(into: Set<FileID>()) { $0.insert($1) }
        }
        #expect(files.count == 1)
        node = try await node.restart()
        let again = try await concatenate(parts, on: node, key: "k")
        #expect(files == [again.id])
        #expect(try await node.content(of: again) == parts.flatMap(\.content))
    }

    @Test func `bytes copied before an interruption are not copied again`() async throws {
        var node = try await fixture.start()
        let parts = try await parts([1300, 1700], on: node)
        let id = try await whole(of: parts, on: node)
        // The second chunk fails.
        let failures = Shared(0)
        node.metadata.before { call in
            if call == .commit, failures.increment() >= 2 {
                throw MetadataError.unavailable("planned")
            }
        }
        let engine = node.engine
        let hasFailed = try await eventually(within: .seconds(30)) {
            if failures.value >= 2 { return true }
            _ = try await engine.concatenate(id, owner: .tester)
            return false
        }
        #expect(hasFailed)
        node.metadata.before(nil)
        node = try await node.restart()
        // The earlier process may not have released its lease.
        fixture.clock.advance(by: node.engine.configuration.finalizeLease)
        let commitCount = Shared(0)
        node.metadata.before { if $0 == .commit { _ = commitCount.increment() } }
        let file = try await node.made(id)
        #expect(commitCount.value == 2)
        #expect(try await node.content(of: file) == parts.flatMap(\.content))
    }

    @Test func `a partial upload that becomes a file during its copy is copied to its end`()
        async throws
    {
        let node = try await fixture.start()
        let part = try await parts([3500], on: node)[0]
        let (slow, concatenation) = await stalled(part, on: node)
        let finish = Task { try await node.finish(part) }
        // The reader ends with the call under way. Only then is the staging area released.
        slow.open()
        let file = try await finish.value
        let whole = try await concatenation.value
        #expect(file.digest == part.digest)
        #expect(try await node.content(of: whole) == part.content)
        #expect(try await node.bytes.stagingKeys() == [])
    }

    @Test func `cancelling a partial upload during its copy succeeds, and the copy fails`()
        async throws
    {
        let node = try await fixture.start()
        let part = try await parts([3500], on: node)[0]
        let (slow, concatenation) = await stalled(part, on: node)
        let cancel = Task {
            try await node.engine.cancelSession(part.id, owner: part.owner)
        }
        slow.open()
        try await cancel.value
        await #expect(throws: EngineError(.sessionExpired)) { try await concatenation.value }
    }
}

extension EngineHolder {
    /// Asks for a final upload until it is a file.
    func made(_ id: SessionID, owner: OwnerID = .tester) async throws -> FileRecord {
        while true {
            if case .file(let file) = try await engine.concatenate(id, owner: owner) { return file }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Waits until the session is completed, without asking for the concatenation.
    func untilCompleted(_ id: SessionID, owner: OwnerID = .tester) async throws {
        let isCompleted = try await eventually(within: .seconds(30)) {
            try await engine.sessionStatus(id, owner: owner).state == .completed
        }
        #expect(isCompleted)
    }
}

extension EngineEnvironment {
    /// Flips a bit in the staging file of an open session.
    fileprivate func flipByte(at offset: Int, of id: SessionID) throws {
        let path = "\(dataPath)/staging/\(id.text.prefix(2))/\(id)"
        let file = open(path, O_RDWR)
        try #require(file >= 0)
        defer { close(file) }
        var byte: UInt8 = 0
        try #require(pread(file, &byte, 1, off_t(offset)) == 1)
        byte ^= 1
        try #require(pwrite(file, &byte, 1, off_t(offset)) == 1)
    }
}
