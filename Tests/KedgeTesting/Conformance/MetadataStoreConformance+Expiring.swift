internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    /// Expires sessions at a second, and forgets those that expired before another.
    @Sendable
    private static func expire(
        _ store: any MetadataStore, at now: Int64, graceEnd: Int64, limit: Int = 100
    ) async throws -> Set<SessionID> {
        let ids = try await store.expireSessions(
            now: Sample.time(now), graceEnd: Sample.time(graceEnd), limit: limit)
        #expect(Set(ids).count == ids.count)
        return Set(ids)
    }

    static let expiring = [
        Case("an open session expires after its time and keeps what it has") { store in
            let record = try await store.make()
            try await store.fill(record)
            #expect(try await expire(store, at: 999, graceEnd: 500) == [])
            #expect(try await store.now(record)?.record.state == .open)
            #expect(try await expire(store, at: 1001, graceEnd: 500) == [record.id])
            #expect(try await expire(store, at: 1002, graceEnd: 500) == [])
            let progress = try #require(try await store.now(record))
            #expect(progress.record.state == .expired)
            #expect(progress.chunks.count == 3)
            await #expect(throws: MetadataError.wrongState(.expired)) {
                try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            }
            #expect(try await store.claimAll() == [])
        },
        Case("after its grace a session is forgotten and its bytes are swept") { store in
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            let record = Sample.session()
            _ = try await store.createSession(record, idempotencyKey: key, adopting: nil)
            try await store.fill(record)
            _ = try await expire(store, at: 1001, graceEnd: 500)
            #expect(try await expire(store, at: 3000, graceEnd: 2000) == [record.id])
            #expect(try await store.now(record) == nil)
            #expect(try await store.claimAll() == [.staging(record.stagingKey)])
            let outcome = try await store.createSession(
                Sample.session(), idempotencyKey: key, adopting: nil)
            guard case .created = outcome else {
                Issue.record("the key was to be forgotten with its session")
                return
            }
        },
        Case("a canceled session is forgotten after its grace, its bytes swept once") { store in
            let record = try await store.make()
            try await store.cancelSession(record.id, owner: record.owner)
            #expect(try await expire(store, at: 1500, graceEnd: 900) == [])
            #expect(try await expire(store, at: 3000, graceEnd: 2000) == [record.id])
            #expect(try await store.now(record) == nil)
            #expect(try await store.claimAll() == [.staging(record.stagingKey)])
        },
        Case("finalizing sessions and files never expire") { store in
            let file = try await store.makeFile()
            let record = try await store.make()
            try await store.fill(record)
            _ = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("a"), fileID: .random())
            #expect(try await expire(store, at: 9000, graceEnd: 8000) == [])
            #expect(try await store.chunkDigests(of: file).count == 3)
            #expect(try await store.now(record)?.record.state == .finalizing)
        },
        Case("the session of a deleted file is forgotten after its grace") { store in
            let file = try await store.makeFile()
            try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(20))
            #expect(try await expire(store, at: 999, graceEnd: 999) == [])
            #expect(try await expire(store, at: 3000, graceEnd: 2000) == [file.sessionID])
            #expect(try await store.progress(of: file.sessionID, owner: file.owner) == nil)
            #expect(try await store.file(file.id, owner: file.owner)?.deletedAt == Sample.time(20))
            await #expect(throws: MetadataError.notFound) {
                try await store.chunkDigests(of: file)
            }
        },
        Case("one call changes no more sessions than its limit") { store in
            for _ in 0..<5 { _ = try await store.make() }
            var counts: [Int] = []
            for _ in 0..<3 {
                counts.append(try await expire(store, at: 1001, graceEnd: 0, limit: 2).count)
            }
            #expect(counts == [2, 2, 1])
        },
        Case("unfinished sessions are listed with the end of what they claim") { store in
            _ = try await store.makeFile()
            let canceled = try await store.make()
            try await store.cancelSession(canceled.id, owner: canceled.owner)
            let empty = try await store.make()
            let begun = try await store.make(Sample.session(owner: Sample.stranger))
            _ = try await store.commit([Sample.chunk(1)], touching: Sample.touch(begun))
            try await store.savePartial(Sample.partial(0), touching: Sample.touch(begun))
            let ahead = try await store.make()
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(ahead))
            try await store.savePartial(Sample.partial(2), touching: Sample.touch(ahead))
            let finalizing = try await store.make()
            try await store.fill(finalizing)
            _ = try await store.beginFinalize(
                of: finalizing.id, digest: Sample.digest("a"), fileID: .random())
            let found = try await store.unfinishedSessions()
            let ends = Dictionary(uniqueKeysWithValues: found.map { ($0.record.id, $0.claimedEnd) })
            #expect(ends == [empty.id: 0, begun.id: 200, ahead.id: 230, finalizing.id: 250])
            #expect(found.first { $0.record.id == finalizing.id }?.record.state == .finalizing)
        },
    ]
}
