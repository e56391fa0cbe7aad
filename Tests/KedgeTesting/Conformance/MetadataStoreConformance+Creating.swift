internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    static let creating = [
        Case("a created session reads back as it was") { store in
            for record in [
                Sample.session(declaredDigest: Sample.digest("file")),
                Sample.session(fileSize: nil),
            ] {
                let created = try await store.make(record)
                #expect(created == record)
                let progress = try #require(try await store.now(record))
                #expect(progress.record == record)
                #expect(progress.chunks.isEmpty)
                #expect(progress.partials.isEmpty)
            }
        },
        Case("a session reads as absent for another owner and under another id") { store in
            let record = try await store.make()
            #expect(try await store.progress(of: record.id, owner: Sample.stranger) == nil)
            #expect(try await store.progress(of: .random(), owner: Sample.owner) == nil)
        },
        Case("unfinished sessions are listed newest first with their bytes") { store in
            var made: [SessionRecord] = []
            // Three sessions share a time, so that the order within one time is tested, too.
            for seconds: Int64 in [1, 2, 2, 2, 3] {
                made.append(
                    try await store.make(Sample.session(createdAt: Sample.time(seconds))))
            }
            _ = try await store.make(Sample.session(owner: Sample.stranger))
            _ = try await store.makeFile()
            try await store.cancelSession(try await store.make().id, owner: Sample.owner)
            let filled = made[4]
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(filled))
            var listed: [UnfinishedUpload] = []
            while true {
                let page = try await store.unfinishedSessions(
                    of: Sample.owner, after: listed.last.map { SessionCursor($0.record) }, limit: 2)
                if page.isEmpty { break }
                listed += page
            }
            #expect(Set(listed.map(\.record.id)) == Set(made.map(\.id)))
            #expect(listed.count == made.count)
            #expect(
                listed.map(\.record.createdAt) == listed.map(\.record.createdAt).sorted(by: >))
            #expect(
                listed.map(\.receivedByteCount)
                    == [Sample.chunk(0).byteCount] + [Int64](repeating: 0, count: 4))
        },
        Case("an id that is taken is refused and the first session stays") { store in
            let record = try await store.make()
            var second = Sample.session()
            second.id = record.id
            await expectRefusal { [second] in _ = try await store.make(second) }
            #expect(try await store.now(record)?.record == record)
        },
        Case("a repeated key with the same request answers the first session") { store in
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            let first = Sample.session()
            _ = try await store.createSession(first, idempotencyKey: key, adopting: nil)
            _ = try await store.commit(
                [Sample.chunk(0)], touching: Sample.touch(first, until: 2000))
            let second = Sample.session()
            let outcome = try await store.createSession(
                second, idempotencyKey: key, adopting: nil)
            guard case .replayed(let replayed) = outcome else {
                Issue.record("expected a replay")
                return
            }
            #expect(replayed.id == first.id)
            #expect(replayed.expiresAt == Sample.time(2000))
            #expect(try await store.now(second) == nil)
        },
        Case("a repeated key with another request is a conflict and creates nothing") { store in
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            _ = try await store.createSession(Sample.session(), idempotencyKey: key, adopting: nil)
            let other = IdempotencyKey(key: "key", fingerprint: "another")
            let second = Sample.session()
            let outcome = try await store.createSession(
                second, idempotencyKey: other, adopting: nil)
            guard case .keyConflict = outcome else {
                Issue.record("expected a conflict")
                return
            }
            #expect(try await store.now(second) == nil)
        },
        Case("owners do not share keys") { store in
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            for owner in [Sample.owner, Sample.stranger] {
                let outcome = try await store.createSession(
                    Sample.session(owner: owner), idempotencyKey: key, adopting: nil)
                guard case .created = outcome else {
                    Issue.record("expected a new session")
                    return
                }
            }
        },
        Case("creates with one key at the same time make one session") { store in
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            let ids = try await withThrowingTaskGroup(of: (SessionID, Bool).self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        switch try await store.createSession(
                            Sample.session(), idempotencyKey: key, adopting: nil)
                        {
                        case .created(let record): (record.id, true)
                        case .replayed(let record): (record.id, false)
                        case .keyConflict, .createdInstead, .full, .sourceUsedUp, .linkUsed,
                            .quotaExceeded:
                            throw MetadataError.failed("the requests are equal")
                        }
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(Set(ids.map(\.0)).count == 1)
            #expect(ids.filter(\.1).count == 1)
        },
    ]
}
