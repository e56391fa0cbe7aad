internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    static let chunks = [
        Case("a committed chunk is recorded together with the touch") { store in
            let record = try await store.make()
            let outcomes = try await store.commit(
                [Sample.chunk(2), Sample.chunk(0)],
                touching: Sample.touch(record, until: 2000, prefix: 100))
            #expect(outcomes == [.committed, .committed])
            let progress = try #require(try await store.now(record))
            #expect(progress.chunks == [Sample.chunk(0), Sample.chunk(2)])
            #expect(progress.record.expiresAt == Sample.time(2000))
            #expect(progress.record.prefix == Sample.touch(record, prefix: 100).prefix)
        },
        Case("a touch without a prefix leaves the stored one") { store in
            let record = try await store.make()
            _ = try await store.commit([], touching: Sample.touch(record, prefix: 40))
            _ = try await store.commit([Sample.chunk(1)], touching: Sample.touch(record))
            #expect(try await store.now(record)?.record.prefix?.offset == 40)
        },
        Case("the same chunk again changes nothing but the touch") { store in
            let record = try await store.make()
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            let again = try await store.commit(
                [Sample.chunk(0), Sample.chunk(1), Sample.chunk(1)],
                touching: Sample.touch(record, until: 3000))
            #expect(again == [.alreadyCommitted, .committed, .alreadyCommitted])
            let progress = try #require(try await store.now(record))
            #expect(progress.chunks == [Sample.chunk(0), Sample.chunk(1)])
            #expect(progress.record.expiresAt == Sample.time(3000))
        },
        Case("a commit with a conflict writes nothing") { store in
            let record = try await store.make()
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            let outcomes = try await store.commit(
                [Sample.chunk(1), Sample.chunk(0, "other")],
                touching: Sample.touch(record, until: 3000, prefix: 200))
            #expect(outcomes.last == .conflict(stored: Sample.chunk(0).digest))
            let progress = try #require(try await store.now(record))
            #expect(progress.chunks == [Sample.chunk(0)])
            #expect(progress.record.expiresAt == record.expiresAt)
            #expect(progress.record.prefix == nil)
        },
        Case("two digests for one chunk in one commit are a conflict") { store in
            let record = try await store.make()
            let outcomes = try await store.commit(
                [Sample.chunk(0), Sample.chunk(0, "other")], touching: Sample.touch(record))
            #expect(outcomes.last == .conflict(stored: Sample.chunk(0).digest))
            #expect(try await store.now(record)?.chunks == [])
        },
        Case("a commit removes the partial, also when the chunk was there") { store in
            let record = try await store.make()
            try await store.savePartial(Sample.partial(0), touching: Sample.touch(record))
            try await store.savePartial(Sample.partial(1), touching: Sample.touch(record))
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            #expect(try await store.now(record)?.partials == [Sample.partial(1)])
        },
        Case("chunks that do not fit the session are refused, alone") { store in
            let record = try await store.make()
            for wrong in [
                CommittedChunk(index: 3, byteCount: 100, digest: Sample.digest("")),
                CommittedChunk(index: -1, byteCount: 100, digest: Sample.digest("")),
                CommittedChunk(index: 0, byteCount: 99, digest: Sample.digest("")),
                CommittedChunk(index: 2, byteCount: 51, digest: Sample.digest("")),
                CommittedChunk(index: 0, byteCount: 0, digest: Sample.digest("")),
            ] {
                await expectRefusal {
                    _ = try await store.commit([wrong], touching: Sample.touch(record))
                }
            }
            #expect(try await store.now(record)?.chunks == [])
        },
        Case("a commit that fails half-way leaves nothing of itself behind") { store in
            let record = try await store.make()
            try await store.savePartial(Sample.partial(0), touching: Sample.touch(record))
            let wrong = CommittedChunk(index: 1, byteCount: 99, digest: Sample.digest(""))
            await expectRefusal {
                _ = try await store.commit(
                    [Sample.chunk(0), wrong], touching: Sample.touch(record, until: 2000))
            }
            let progress = try #require(try await store.now(record))
            #expect(progress.chunks.isEmpty)
            #expect(progress.partials == [Sample.partial(0)])
            #expect(progress.record.expiresAt == record.expiresAt)
        },
        Case("a commit needs a session that is there and open") { store in
            let unknown = Sample.session()
            await #expect(throws: MetadataError.notFound) {
                try await store.commit([Sample.chunk(0)], touching: Sample.touch(unknown))
            }
            let record = try await store.make()
            try await store.cancelSession(record.id, owner: record.owner)
            await #expect(throws: MetadataError.wrongState(.canceled)) {
                try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            }
        },
        Case("dropped chunks are gone, with every partial and the prefix") { store in
            let record = try await store.make()
            _ = try await store.commit(
                [Sample.chunk(0), Sample.chunk(1)], touching: Sample.touch(record, prefix: 200))
            try await store.savePartial(Sample.partial(2), touching: Sample.touch(record))
            try await store.invalidateChunks([1, 2], of: record.id)
            let progress = try #require(try await store.now(record))
            #expect(progress.chunks == [Sample.chunk(0)])
            #expect(progress.partials.isEmpty)
            #expect(progress.record.prefix == nil)
            let outcomes = try await store.commit(
                [Sample.chunk(1, "new")], touching: Sample.touch(record))
            #expect(outcomes == [.committed])
        },
        Case("damaged chunks are gone, with a prefix that ends before them") { store in
            let record = try await store.make()
            try await store.fill(record)
            _ = try await store.commit([], touching: Sample.touch(record, prefix: 200))
            try await store.invalidateDamagedChunks([2], of: record.id, knowing: nil)
            let progress = try #require(try await store.now(record))
            #expect(progress.chunks.map(\.index) == [0, 1])
            #expect(progress.record.prefix == nil)
        },
        Case("damaged chunks of a finalizing session stay") { store in
            let record = try await store.make()
            try await store.fill(record)
            _ = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("a"), fileID: .random())
            await #expect(throws: MetadataError.wrongState(.finalizing)) {
                try await store.invalidateDamagedChunks([1], of: record.id, knowing: nil)
            }
            #expect(try await store.now(record)?.chunks.count == 3)
        },
        Case("chunks of a completed session stay") { store in
            let file = try await store.makeFile()
            await #expect(throws: MetadataError.wrongState(.completed)) {
                try await store.invalidateChunks([0], of: file.sessionID)
            }
            #expect(try await store.chunkDigests(of: file).count == 3)
        },
    ]
}
