import KedgeEngine
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

/// R11: another owner's id answers exactly like an unknown one, for every operation.
@Suite(.timeLimit(.minutes(1))) struct OwnershipTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    enum Operation: CaseIterable, Sendable {
        case status
        case offset
        case putKnown
        case putNew
        case append
        case finalize
        case cancel
    }

    /// Runs the operation as the upload's owner, and returns its error.
    private func error(
        of operation: Operation, on upload: Upload, _ node: Node
    ) async -> EngineError? {
        do {
            switch operation {
            case .status: _ = try await node.status(of: upload)
            case .offset: _ = try await node.offset(of: upload)
            case .putKnown: try await node.put(0, of: upload)
            case .putNew: try await node.put(1, of: upload)
            case .append: _ = try await node.append([1], to: upload, at: 1000)
            case .finalize: _ = try await node.finish(upload)
            case .cancel:
                try await node.engine.cancelSession(upload.id, owner: upload.owner)
            }
            return nil
        } catch {
            return error as? EngineError
        }
    }

    @Test(arguments: Operation.allCases, [false, true])
    func `a stranger cannot tell a session from none, and changes nothing`(
        operation: Operation, inMemory: Bool
    ) async throws {
        var node = try await fixture.start()
        let mine = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: mine)
        if !inMemory { node = try await node.restart() }
        let foreign = Upload(
            id: mine.id, owner: .stranger, content: mine.content, chunkSize: 1000)
        let unknown = Upload(
            id: .random(), owner: .stranger, content: mine.content, chunkSize: 1000)
        let error = await error(of: operation, on: foreign, node)
        let expected = await self.error(of: operation, on: unknown, node)
        #expect(error?.code == .sessionNotFound)
        #expect(error?.code == expected?.code)
        #expect(error?.detail == expected?.detail)
        #expect(error?.expectedOffset == nil)
        let status = try await node.status(of: mine)
        #expect(status.state == .open)
        #expect(status.receivedChunks == [0])
    }

    @Test func `a stranger cannot tell a file from none`() async throws {
        let node = try await fixture.start()
        let file = try await node.file(sampleBytes(100))
        await #expect(throws: EngineError(.fileNotFound)) {
            try await node.engine.file(file.id, owner: .stranger)
        }
        await #expect(throws: EngineError(.fileNotFound)) {
            try await node.engine.deleteFile(file.id, owner: .stranger)
        }
        #expect(try await node.engine.files(of: .stranger, after: nil, limit: 9) == [])
        #expect(try await node.engine.file(file.id, owner: .tester) == file)
        try await node.engine.deleteFile(file.id, owner: .tester)
        // A stranger does not learn that there was a file.
        await #expect(throws: EngineError(.fileNotFound)) {
            try await node.engine.file(file.id, owner: .stranger)
        }
    }

    /// Otherwise the time of the answer would show which sessions exist.
    @Test func `a stranger's request reads the store whether the session is in memory or unknown`()
        async throws
    {
        let node = try await fixture.start()
        let mine = try await node.begin(sampleBytes(2500))
        try await node.put(0, of: mine)
        let reads = Shared(0)
        node.metadata.before { call in
            if call == .progress { _ = reads.increment() }
        }
        for (id, expected) in [(SessionID.random(), 1), (mine.id, 2)] {
            await #expect(throws: EngineError(.sessionNotFound)) {
                try await node.engine.sessionStatus(id, owner: .stranger)
            }
            #expect(reads.value == expected)
        }
        #expect(try await node.status(of: mine).sessionId == mine.id)
    }

    /// The stranger's request is on its way to the store when the owner's arrives.
    @Test func `a stranger's pending request does not become the owner's answer`() async throws {
        var node = try await fixture.start()
        let mine = try await node.begin(sampleBytes(2500))
        node = try await node.restart()
        let strangerIsAsking = Gate()
        let goOn = Gate()
        let count = Shared(0)
        node.metadata.before { call in
            guard call == .progress, count.increment() == 1 else { return }
            strangerIsAsking.open()
            await goOn.wait()
        }
        let foreign = Task { [node] in
            try await node.engine.sessionStatus(mine.id, owner: .stranger)
        }
        await strangerIsAsking.wait()
        // The owner is answered while the stranger still waits.
        #expect(try await node.status(of: mine).sessionId == mine.id)
        goOn.open()
        await #expect(throws: EngineError(.sessionNotFound)) { try await foreign.value }
        #expect(try await node.status(of: mine).sessionId == mine.id)
    }
}
