import KedgeEngine
import KedgeModel
import KedgePostgres
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct WriterLeaseTests {
    private func withTwoStores(
        _ body: (_ first: PostgresStore, _ second: PostgresStore) async throws -> Void
    ) async throws {
        let url = try await PostgresServer.shared().makeDatabase()
        let (first, second) = (try await openStore(url), try await openStore(url))
        try await body(first, second)
        try await first.close()
        try await second.close()
    }

    private func touch(_ record: SessionRecord, _ writer: FencingToken) -> SessionUpdate {
        var touch = Sample.touch(record)
        touch.writer = writer
        return touch
    }

    private let ours = FencingToken(index: 0, text: "ours")
    private let theirs = FencingToken(index: 0, text: "theirs")

    @Test func `a chunk has one writer, which may claim it again, until it is released`()
        async throws
    {
        try await withTwoStores { first, second in
            let id = try await first.make().id
            func claim(_ store: PostgresStore, _ token: FencingToken) async throws -> WriterClaim {
                try await store.claimWriter(token, of: id, lease: .seconds(60), takesOver: false)
            }
            #expect(try await claim(first, ours) == .granted)
            #expect(try await claim(second, theirs) == .held(by: "ours"))
            #expect(try await claim(first, ours) == .granted)
            #expect(try await claim(second, FencingToken(index: 1, text: "theirs")) == .granted)
            // A token without the lease releases nothing.
            try await second.releaseWriter(theirs, of: id)
            #expect(try await claim(second, theirs) == .held(by: "ours"))
            try await first.releaseWriter(ours, of: id)
            #expect(try await claim(second, theirs) == .granted)
        }
    }

    @Test func `a renewal reports that another writer wants or has the chunk`() async throws {
        try await withTwoStores { first, second in
            let id = try await first.make().id
            let other = FencingToken(index: 1, text: "other")
            for token in [ours, other] {
                _ = try await first.claimWriter(
                    token, of: id, lease: .seconds(60), takesOver: false)
            }
            let both = [(id: id, token: ours), (id: id, token: other)]
            #expect(try await first.renewWriters(both, lease: .seconds(60)) == [])
            _ = try await second.claimWriter(theirs, of: id, lease: .seconds(60), takesOver: false)
            #expect(try await first.renewWriters(both, lease: .seconds(60)) == [ours])
            _ = try await second.claimWriter(theirs, of: id, lease: .seconds(60), takesOver: true)
            #expect(try await first.renewWriters(both, lease: .seconds(60)) == [ours])
            let mine = [(id: id, token: theirs)]
            #expect(try await second.renewWriters(mine, lease: .seconds(60)) == [])
            #expect(try await second.renewWriters([], lease: .seconds(60)) == [])
        }
    }

    @Test func `an expired lease can be claimed, and a renewed one cannot`() async throws {
        try await withTwoStores { first, second in
            let id = try await first.make().id
            _ = try await first.claimWriter(ours, of: id, lease: .zero, takesOver: false)
            _ = try await first.renewWriters([(id: id, token: ours)], lease: .seconds(60))
            #expect(
                try await second.claimWriter(theirs, of: id, lease: .seconds(60), takesOver: false)
                    == .held(by: "ours"))
            _ = try await first.renewWriters([(id: id, token: ours)], lease: .zero)
            #expect(
                try await second.claimWriter(theirs, of: id, lease: .seconds(60), takesOver: false)
                    == .granted)
        }
    }

    @Test func `a fenced writer stays fenced after the newer one releases the chunk`()
        async throws
    {
        try await withTwoStores { first, second in
            let record = try await first.make()
            _ = try await first.claimWriter(
                ours, of: record.id, lease: .seconds(60), takesOver: false)
            _ = try await second.claimWriter(
                theirs, of: record.id, lease: .seconds(60), takesOver: true)
            try await second.savePartial(
                Sample.partial(0, byteCount: 60), touching: touch(record, theirs))
            try await second.releaseWriter(theirs, of: record.id)
            // The fenced writer's bytes may be fewer than those acknowledged since.
            await #expect(throws: MetadataError.writerReplaced) {
                try await first.savePartial(
                    Sample.partial(0, byteCount: 30), touching: touch(record, ours))
            }
            await #expect(throws: MetadataError.writerReplaced) {
                try await first.discardPartial(of: record.id, index: 0, by: ours)
            }
            await #expect(throws: MetadataError.writerReplaced) {
                try await first.invalidateChunks(touching: touch(record, ours))
            }
            #expect(try await first.now(record)?.partials.map(\.byteCount) == [60])
            let next = FencingToken(index: 0, text: "next")
            #expect(
                try await first.claimWriter(
                    next, of: record.id, lease: .seconds(60), takesOver: false) == .granted)
        }
    }

    @Test func `one of many concurrent claims wins, and the others learn the winner`() async throws
    {
        try await withTwoStores { first, second in
            let id = try await first.make().id
            let claims = try await withThrowingTaskGroup(of: (String, WriterClaim).self) { group in
                for number in 0..<20 {
                    let store = number.isMultiple(of: 2) ? first : second
                    let token = FencingToken(index: 0, text: "writer \(number)")
                    group.addTask {
                        let claim = try await store.claimWriter(
                            token, of: id, lease: .seconds(60), takesOver: false)
                        return (token.text, claim)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let winners = claims.filter { $0.1 == .granted }
            #expect(winners.count == 1)
            let winner = try #require(winners.first).0
            #expect(claims.filter { $0.1 == .held(by: winner) }.count == 19)
        }
    }

    @Test func `a writer that was replaced commits nothing and saves nothing`() async throws {
        try await withTwoStores { first, second in
            let record = try await first.make()
            let id = record.id
            _ = try await first.claimWriter(ours, of: id, lease: .seconds(60), takesOver: false)
            try await first.savePartial(Sample.partial(0), touching: touch(record, ours))
            _ = try await second.claimWriter(theirs, of: id, lease: .seconds(60), takesOver: true)
            await #expect(throws: MetadataError.writerReplaced) {
                try await first.commit([Sample.chunk(0)], touching: touch(record, ours))
            }
            await #expect(throws: MetadataError.writerReplaced) {
                try await first.savePartial(
                    Sample.partial(0, byteCount: 60), touching: touch(record, ours))
            }
            let progress = try #require(try await second.now(record))
            #expect(progress.chunks == [])
            #expect(progress.partials == [Sample.partial(0)])
            #expect(
                try await second.commit([Sample.chunk(0)], touching: touch(record, theirs))
                    == [.committed])
        }
    }

    /// The state after a crash of the database: no lease rows at all.
    @Test func `a writer whose lease was lost continues until another one claims the chunk`()
        async throws
    {
        try await withTwoStores { first, second in
            let record = try await first.make()
            #expect(
                try await first.commit([Sample.chunk(0)], touching: touch(record, ours))
                    == [.committed])
            let ours = FencingToken(index: 1, text: "ours")
            #expect(
                try await first.renewWriters([(id: record.id, token: ours)], lease: .seconds(60))
                    == [])
            let theirs = FencingToken(index: 1, text: "theirs")
            #expect(
                try await second.claimWriter(
                    theirs, of: record.id, lease: .seconds(60), takesOver: false) == .granted)
            await #expect(throws: MetadataError.writerReplaced) {
                try await first.commit([Sample.chunk(1)], touching: touch(record, ours))
            }
        }
    }

    @Test func `the sweep removes leases of sessions that ended`() async throws {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        let store = try await openStore(url)
        let (open, ended) = (try await store.make(), try await store.make())
        for id in [open.id, ended.id] {
            _ = try await store.claimWriter(ours, of: id, lease: .seconds(60), takesOver: false)
        }
        try await store.cancelSession(ended.id, owner: ended.owner)
        _ = try await store.expireSessions(
            now: Sample.time(1), graceEnd: Sample.time(0), limit: 10)
        #expect(
            try await server.query("SELECT session_id FROM writer_lease", in: url) == open.id.text)
        try await store.close()
    }
}
