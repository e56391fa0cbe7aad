import KedgeEngine
import KedgeModel
import KedgePostgres
import KedgeTesting
import Testing

/// A node's view of a session, kept up to date by asking for changes.
private struct Knowledge {
    var revision: Int64 = -1
    var chunks: [Int: CommittedChunk] = [:]
    var partials: [PartialRecord] = []
    var record: SessionRecord?

    mutating func learn(_ changes: SessionChanges) {
        if changes.isWhole { chunks = [:] }
        for chunk in changes.chunks { chunks[chunk.index] = chunk }
        if let news = changes.partials { partials = news }
        revision = changes.revision
        record = changes.record
    }
}

@Suite(.timeLimit(.minutes(2))) struct ChangesTests {
    @Test(arguments: 0..<8 as Range<UInt64>)
    func `a node that asks for changes rarely knows the same as one that asks after each change`(
        _ seed: UInt64
    ) async throws {
        let store = try await openStore(try await PostgresServer.shared().makeDatabase())
        var random = SplitMix64(seed: seed)
        let record = try await store.make(Sample.session(fileSize: 20 * Sample.chunkSize))
        var eager = Knowledge()
        var lazy = Knowledge()
        for step in 0..<60 {
            try await change(record, in: store, step, &random)
            for isEager in [true, false] where isEager || random.next() % 7 == 0 {
                var knowledge = isEager ? eager : lazy
                let changes = try #require(
                    try await store.changes(of: record.id, since: knowledge.revision))
                knowledge.learn(changes)
                try await expect(
                    knowledge, isTrueOf: record, in: store, "seed \(seed), step \(step)")
                if isEager { eager = knowledge } else { lazy = knowledge }
            }
        }
        try await store.close()
    }

    private func change(
        _ record: SessionRecord, in store: PostgresStore, _ step: Int,
        _ random: inout SplitMix64
    ) async throws {
        let index = Int(random.next() % 20)
        let touch = Sample.touch(record, until: 1000 + Int64(step))
        switch random.next() % 8 {
        case 0: try await store.invalidateChunks([index], of: record.id)
        case 1: try await store.discardPartial(of: record.id, index: index, by: nil)
        case 2, 3:
            try await store.savePartial(
                Sample.partial(index, byteCount: Int64(1 + step)), touching: touch)
        default:
            let chunk = CommittedChunk(
                index: index, byteCount: Sample.chunkSize, digest: Sample.digest("\(index)"),
                location: random.next() % 2 == 0 ? nil : "part \(step)")
            _ = try await store.commit([chunk], touching: touch)
        }
    }

    private func expect(
        _ knowledge: Knowledge, isTrueOf record: SessionRecord, in store: PostgresStore,
        _ fixture: Comment
    ) async throws {
        let all = try #require(try await store.now(record))
        #expect(knowledge.record == all.record, fixture)
        #expect(knowledge.chunks.values.sorted { $0.index < $1.index } == all.chunks, fixture)
        #expect(knowledge.partials == all.partials, fixture)
        #expect(knowledge.revision == all.revision, fixture)
    }

    @Test func `changes contain only news, and all chunks after a removal`() async throws {
        let store = try await openStore(try await PostgresServer.shared().makeDatabase())
        let record = try await store.make()
        #expect(try await store.changes(of: .random(), since: -1) == nil)
        _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
        _ = try await store.commit([Sample.chunk(1)], touching: Sample.touch(record))
        let news = try #require(try await store.changes(of: record.id, since: 1))
        #expect(news.chunks == [Sample.chunk(1)])
        #expect(news.partials == [])
        #expect(!news.isWhole)
        let nothing = try #require(try await store.changes(of: record.id, since: news.revision))
        #expect(nothing.chunks == [])
        #expect(nothing.partials == nil)
        #expect(!nothing.isWhole)
        try await store.invalidateChunks([0], of: record.id)
        let whole = try #require(try await store.changes(of: record.id, since: news.revision))
        #expect(whole.isWhole)
        #expect(whole.chunks == [Sample.chunk(1)])
        try await store.close()
    }

    @Test func `adopted bytes appear in the changes of the new session`() async throws {
        let store = try await openStore(try await PostgresServer.shared().makeDatabase())
        let old = try await store.make(Sample.session(expiresAt: Sample.time(1)))
        _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(old, until: 1))
        let new = Sample.session(createdAt: Sample.time(5))
        _ = try await store.createSession(new, idempotencyKey: nil, adopting: old.id)
        let news = try #require(try await store.changes(of: new.id, since: 0))
        #expect(news.chunks == [Sample.chunk(0)])
        let rest = try #require(try await store.changes(of: old.id, since: 1))
        #expect(rest.isWhole)
        #expect(rest.chunks == [])
        try await store.close()
    }

    @Test func `a session of ten thousand chunks reads back completely`() async throws {
        let store = try await openStore(try await PostgresServer.shared().makeDatabase())
        let record = try await store.make(Sample.session(fileSize: 10_000 * Sample.chunkSize))
        let chunks = (0..<10_000).map {
            CommittedChunk(
                index: $0, byteCount: Sample.chunkSize, digest: Sample.digest("\($0)"),
                location: "part:\($0)")
        }
        _ = try await store.commit(chunks, touching: Sample.touch(record))
        #expect(try await store.now(record)?.chunks == chunks)
        try await store.close()
    }
}
