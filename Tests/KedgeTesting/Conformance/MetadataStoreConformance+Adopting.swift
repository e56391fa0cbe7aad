internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    /// Makes a session with one chunk, a partial and a prefix, valid until second 1000.
    @Sendable
    private static func makeOld(
        _ store: any MetadataStore, declaredDigest: SHA256Digest? = nil
    ) async throws -> SessionRecord {
        let record = try await store.make(Sample.session(declaredDigest: declaredDigest))
        _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(record, prefix: 100))
        try await store.savePartial(Sample.partial(1), touching: Sample.touch(record))
        return record
    }

    @Sendable
    private static func adopt(
        _ store: any MetadataStore, _ old: SessionRecord, by new: SessionRecord
    ) async throws -> SessionProgress {
        _ = try await store.createSession(new, idempotencyKey: nil, adopting: old.id)
        return try #require(try await store.now(new))
    }

    private static func successor(
        owner: OwnerID = Sample.owner, fileSize: Int64? = Sample.fileSize,
        chunkSize: Int64 = Sample.chunkSize, declaredDigest: SHA256Digest? = nil,
        createdAt: Int64 = 1500
    ) -> SessionRecord {
        Sample.session(
            owner: owner, fileSize: fileSize, chunkSize: chunkSize, declaredDigest: declaredDigest,
            createdAt: Sample.time(createdAt), expiresAt: Sample.time(4000))
    }

    static let adopting = [
        Case("an expired session hands everything it received to its successor") { store in
            let old = try await makeOld(store)
            _ = try await store.expireSessions(
                now: Sample.time(1001), graceEnd: Sample.time(0), limit: 10)
            let progress = try await adopt(store, old, by: successor())
            #expect(progress.record.stagingKey == old.stagingKey)
            #expect(progress.record.state == .open)
            #expect(progress.record.prefix?.offset == 100)
            #expect(progress.chunks == [Sample.chunk(0)])
            #expect(progress.partials == [Sample.partial(1)])
            let rest = try #require(try await store.now(old))
            #expect(rest.record.state == .expired)
            #expect(rest.chunks.isEmpty)
            #expect(rest.partials.isEmpty)
        },
        Case("an open session can be adopted once its time is over, and not before") { store in
            let old = try await makeOld(store)
            let early = try await adopt(store, old, by: successor(createdAt: 999))
            #expect(early.chunks.isEmpty)
            #expect(early.record.stagingKey != old.stagingKey)
            #expect(try await store.now(old)?.chunks.count == 1)
            let late = try await adopt(store, old, by: successor(createdAt: 1001))
            #expect(late.record.stagingKey == old.stagingKey)
            #expect(try await store.now(old)?.record.state == .expired)
        },
        Case("bytes are adopted once and swept with the successor only") { store in
            let old = try await makeOld(store)
            let new = try await adopt(store, old, by: successor()).record
            let third = try await adopt(store, old, by: successor())
            #expect(third.chunks.isEmpty)
            #expect(third.record.stagingKey != old.stagingKey)
            _ = try await store.expireSessions(
                now: Sample.time(3000), graceEnd: Sample.time(2000), limit: 10)
            #expect(try await store.now(old) == nil)
            #expect(try await store.claimAll() == [])
            try await store.cancelSession(new.id, owner: new.owner)
            #expect(try await store.claimAll() == [.staging(old.stagingKey)])
        },
        Case("a successor that does not fit starts empty") { store in
            let old = try await makeOld(store, declaredDigest: Sample.digest("file"))
            for new in [
                successor(owner: Sample.stranger), successor(fileSize: 251),
                successor(fileSize: nil), successor(chunkSize: 50),
                successor(declaredDigest: Sample.digest("another file")),
            ] {
                let progress = try await adopt(store, old, by: new)
                #expect(progress.record == new)
                #expect(progress.chunks.isEmpty)
            }
            let fitting = try await adopt(
                store, old, by: successor(declaredDigest: Sample.digest("file")))
            #expect(fitting.chunks.count == 1)
        },
        Case("a declared digest on one side alone does not hinder an adoption") { store in
            let first = try await makeOld(store, declaredDigest: Sample.digest("file"))
            #expect(try await adopt(store, first, by: successor()).chunks.count == 1)
            let second = try await makeOld(store)
            let new = successor(declaredDigest: Sample.digest("file"))
            #expect(try await adopt(store, second, by: new).chunks.count == 1)
        },
        Case("adopting an unknown, canceled or completed session starts empty") { store in
            let canceled = try await makeOld(store)
            try await store.cancelSession(canceled.id, owner: canceled.owner)
            let file = try await store.makeFile()
            for id in [SessionID.random(), canceled.id, file.sessionID] {
                let new = successor(createdAt: 9000)
                let outcome = try await store.createSession(
                    new, idempotencyKey: nil, adopting: id)
                guard case .created(new) = outcome else {
                    Issue.record("expected an empty session")
                    return
                }
            }
            #expect(try await store.chunkDigests(of: file).count == 3)
        },
    ]
}
