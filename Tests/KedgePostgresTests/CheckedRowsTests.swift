import KedgeEngine
import KedgeModel
import KedgePostgres
import KedgeTesting
import Testing

/// Rows that a check of the stores reads from the database.
@Suite(.timeLimit(.minutes(2))) struct CheckedRowsTests {
    private func withStore(
        _ body: (_ store: PostgresStore, _ server: PostgresServer, _ url: String) async throws ->
            Void
    ) async throws {
        let server = try await PostgresServer.shared()
        let url = try await server.makeDatabase()
        let store = try await openStore(url)
        try await body(store, server, url)
        try await store.close()
    }

    /// A session with two chunks and a partial of the third.
    private func session(in store: PostgresStore) async throws -> SessionRecord {
        let record = try await store.make()
        _ = try await store.commit(
            [Sample.chunk(0), Sample.chunk(1)], touching: Sample.touch(record))
        try await store.savePartial(Sample.partial(2), touching: Sample.touch(record))
        return record
    }

    private func file(
        _ content: String, at location: String? = nil, in store: PostgresStore
    ) async throws -> FileRecord {
        let record = try await session(in: store)
        _ = try await store.commit([Sample.chunk(2)], touching: Sample.touch(record))
        _ = try await store.beginFinalize(
            of: record.id, digest: Sample.digest(content), fileID: .random())
        return try await store.completeFinalize(
            of: record.id, at: Sample.time(1), location: location,
            keepUntil: Sample.time(61))
    }

    @Test func `pages of rows follow each other without gap or repetition`() async throws {
        try await withStore { store, _, _ in
            var sessions: [SessionRecord] = []
            for _ in 0..<3 { sessions.append(try await session(in: store)) }
            sessions.sort { $0.id.text < $1.id.text }
            var found: [SessionID] = []
            while let next = try await store.sessionsWithBytes(after: found.last, limit: 1).first {
                found.append(next.id)
            }
            #expect(found == sessions.map(\.id))
            let id = sessions[1].id
            #expect(try await store.chunks(of: id, from: 0, limit: 1) == [Sample.chunk(0)])
            #expect(try await store.chunks(of: id, from: 1, limit: 9) == [Sample.chunk(1)])
            #expect(try await store.chunks(of: id, from: 2, limit: 9) == [])
            #expect(try await store.partials(of: id, from: 2, limit: 1) == [Sample.partial(2)])
            #expect(try await store.partials(of: id, from: 3, limit: 1) == [])
        }
    }

    @Test func `live files come in the order of their digests, with their locations`() async throws
    {
        try await withStore { store, _, _ in
            var files: [FileRecord] = []
            for content in ["a", "b", "a", "c"] {
                files.append(
                    try await file(content, at: content == "b" ? "objects/b" : nil, in: store))
            }
            let deleted = files.removeLast()
            try await store.deleteFile(deleted.id, owner: deleted.owner, at: Sample.time(2))
            var found: [FileRecord] = []
            while let next = try await store.liveFiles(after: found.last, limit: 1).first {
                found.append(next)
            }
            #expect(
                found
                    == files.sorted {
                        ($0.digest.hex, $0.id.text) < ($1.digest.hex, $1.id.text)
                    })
            #expect(try await store.isKnown(StoredBytes.blob(Sample.digest("a"))))
            #expect(
                try await store.isKnown(StoredBytes.blob(deleted.digest)), "the garbage knows it")
            #expect(try await !store.isKnown(StoredBytes.blob(Sample.digest("nothing"))))
            #expect(try await !store.isKnown(StoredBytes.staging(StagingKey(.random()))))
        }
    }

    @Test func `promised bytes count a shared blob once and include unfinished sessions`()
        async throws
    {
        try await withStore { store, _, _ in
            #expect(try await store.promisedByteCount() == 0)
            _ = try await file("a", in: store)
            _ = try await file("a", in: store)
            _ = try await session(in: store)
            #expect(try await store.promisedByteCount() == 250 + 200 + 30)
        }
    }

    @Test func `unfinished sessions come with the end of their claimed bytes`() async throws {
        try await withStore { store, _, _ in
            let record = try await session(in: store)
            let empty = try await store.make()
            _ = try await file("a", in: store)
            let found = try await store.unfinishedSessions()
            #expect(found.map(\.record.id) == [record.id, empty.id])
            #expect(found.map(\.claimedEnd) == [230, 0])
        }
    }

    @Test func `faults that the database server knows of are found`() async throws {
        try await withStore { store, server, url in
            #expect(try await store.databaseFaults() == [])
            try await server.query(
                """
                ALTER TABLE chunk ADD CONSTRAINT unchecked
                    FOREIGN KEY (session) REFERENCES session (number) NOT VALID;
                UPDATE pg_index SET indisvalid = false
                WHERE indexrelid = 'garbage_by_lease'::regclass
                """, in: url)
            let faults = try await store.databaseFaults()
            #expect(faults.map(\.kind) == [.databaseDamaged, .referenceBroken])
            #expect(faults.map(\.id) == ["garbage", "chunk"])
        }
    }
}
