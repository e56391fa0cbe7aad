internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    /// Makes a node's lease of a minute from a second on.
    @Sendable
    private static func lease(_ holder: String, at seconds: Int64) -> WorkLease {
        WorkLease(holder: holder, now: Sample.time(seconds), until: Sample.time(seconds + 60))
    }

    static let work = [
        Case("a promised finalize is one node's until its lease is over") { store in
            let record = try await store.make()
            let ours = lease("a", at: 0)
            #expect(try await store.takeFinalize(of: record.id, expecting: nil, lease: ours))
            #expect(
                try await !store.takeFinalize(
                    of: record.id, expecting: nil, lease: lease("b", at: 59)))
            #expect(
                try await store.takeFinalize(
                    of: record.id, expecting: nil, lease: lease("a", at: 59)))
            #expect(
                try await !store.takeFinalize(
                    of: record.id, expecting: nil, lease: lease("b", at: 60)))
            #expect(
                try await store.takeFinalize(
                    of: record.id, expecting: nil, lease: lease("b", at: 119)))
        },
        Case("an abandoned finalize is taken over once, with what was expected") { store in
            let record = try await store.make()
            let digest = Sample.digest("expected")
            _ = try await store.takeFinalize(
                of: record.id, expecting: digest, lease: lease("a", at: 0))
            #expect(
                try await store.takeAbandonedFinalizes(lease: lease("b", at: 59), limit: 9) == [])
            let jobs = try await store.takeAbandonedFinalizes(lease: lease("b", at: 60), limit: 9)
            #expect(jobs.map(\.record.id) == [record.id])
            #expect(jobs.map(\.expected) == [digest])
            #expect(
                try await store.takeAbandonedFinalizes(lease: lease("c", at: 61), limit: 9) == [])
            // A repeated call without an expected digest keeps the earlier one.
            _ = try await store.takeFinalize(
                of: record.id, expecting: nil, lease: lease("b", at: 61))
            let again = try await store.takeAbandonedFinalizes(lease: lease("c", at: 200), limit: 9)
            #expect(again.map(\.expected) == [digest])
        },
        Case("a session does not expire before the lease of its finalize") { store in
            let record = try await store.make(Sample.session(expiresAt: Sample.time(10)))
            _ = try await store.takeFinalize(
                of: record.id, expecting: nil, lease: lease("a", at: 5))
            #expect(try await store.now(record)?.record.expiresAt == Sample.time(65))
            _ = try await store.takeAbandonedFinalizes(lease: lease("b", at: 70), limit: 9)
            #expect(try await store.now(record)?.record.expiresAt == Sample.time(130))
        },
        Case("finalizing sessions without a worker are taken over, up to the limit") { store in
            for _ in 0..<3 {
                let record = try await store.make()
                try await store.fill(record)
                _ = try await store.beginFinalize(
                    of: record.id, digest: Sample.digest("a"), fileID: .random())
            }
            _ = try await store.make()
            let first = try await store.takeAbandonedFinalizes(lease: lease("a", at: 0), limit: 2)
            let second = try await store.takeAbandonedFinalizes(lease: lease("b", at: 0), limit: 2)
            #expect(first.count == 2)
            #expect(second.count == 1)
            #expect(Set((first + second).map(\.record.id)).count == 3)
        },
        Case("a promised finalize ends when it completes, with its session, or on release") {
            store in
            let ends: [@Sendable (SessionRecord) async throws -> Void] = [
                { _ = try await store.completeFinalize(of: $0.id, at: Sample.time(1)) },
                { try await store.reopen($0.id) },
                { try await store.cancelSession($0.id, owner: $0.owner) },
                {
                    try await store.reopen($0.id)
                    try await store.discardFinalize(of: $0.id, by: lease("a", at: 0))
                },
            ]
            for (number, end) in ends.enumerated() {
                let record = try await store.make()
                try await store.fill(record)
                _ = try await store.takeFinalize(
                    of: record.id, expecting: nil, lease: lease("a", at: 0))
                _ = try await store.beginFinalize(
                    of: record.id, digest: Sample.digest("end \(number)"), fileID: .random())
                try await end(record)
                #expect(
                    try await store.takeAbandonedFinalizes(lease: lease("b", at: 100), limit: 9)
                        == [])
            }
        },
        Case("only the holder of a promised finalize renews it, and renewing promises none") {
            store in
            let record = try await store.make()
            try await store.renewFinalize(of: record.id, lease: lease("a", at: 0))
            #expect(
                try await store.takeAbandonedFinalizes(lease: lease("b", at: 500), limit: 9) == [])
            _ = try await store.takeFinalize(
                of: record.id, expecting: nil, lease: lease("a", at: 0))
            try await store.renewFinalize(of: record.id, lease: lease("b", at: 30))
            try await store.renewFinalize(of: record.id, lease: lease("a", at: 10))
            #expect(
                try await store.takeAbandonedFinalizes(lease: lease("c", at: 69), limit: 9) == [])
            #expect(
                try await store.takeAbandonedFinalizes(lease: lease("c", at: 70), limit: 9).count
                    == 1)
            try await store.invalidateChunks([], of: record.id)
            #expect(
                try await store.takeAbandonedFinalizes(lease: lease("d", at: 500), limit: 9) == [])
            try await store.renewFinalize(of: .random(), lease: lease("a", at: 0))
        },
        Case("a finalize is promised only for a session that may become a file") { store in
            await #expect(throws: MetadataError.notFound) {
                try await store.takeFinalize(
                    of: .random(), expecting: nil, lease: lease("a", at: 0))
            }
            let file = try await store.makeFile()
            await #expect(throws: MetadataError.wrongState(.completed)) {
                try await store.takeFinalize(
                    of: file.sessionID, expecting: nil, lease: lease("a", at: 0))
            }
            try await store.discardFinalize(of: .random(), by: lease("a", at: 0))
        },
        Case("only its holder releases a promised finalize, or any node once the lease is over") {
            store in
            let record = try await store.make()
            let take = { @Sendable (holder: String, second: Int64) in
                try await store.takeFinalize(
                    of: record.id, expecting: nil, lease: lease(holder, at: second))
            }
            _ = try await take("a", 0)
            try await store.discardFinalize(of: record.id, by: lease("b", at: 59))
            #expect(try await !take("b", 59))
            try await store.discardFinalize(of: record.id, by: lease("b", at: 60))
            let abandoned = try await store.takeAbandonedFinalizes(
                lease: lease("c", at: 1000), limit: 9)
            #expect(abandoned.isEmpty)
        },
        Case("the hash of a session never goes back") { store in
            let record = try await store.make()
            let touch = Sample.touch(record, prefix: 60)
            try await store.savePartial(Sample.partial(0), touching: touch)
            for offset: Int64 in [70, 40] {
                let prefix = try #require(Sample.touch(record, prefix: offset).prefix)
                try await store.savePrefix(prefix, of: record.id, knowing: nil)
                try await store.savePartial(
                    Sample.partial(0, byteCount: 31), touching: Sample.touch(record, prefix: 50))
                #expect(try await store.now(record)?.record.prefix?.offset == 70)
            }
        },
        Case("a writer invalidates all chunks together with the state of their area") { store in
            let record = try await store.make()
            try await store.fill(record)
            _ = try await store.setStagingState("gone", of: record.stagingKey, replacing: nil)
            try await store.invalidateChunks(touching: Sample.touch(record))
            let progress = try #require(try await store.now(record))
            #expect(progress.chunks.isEmpty)
            #expect(progress.record.prefix == nil)
            #expect(try await store.stagingState(of: record.stagingKey) == nil)
            // A finalize job, or another state of the session, prevents the invalidation.
            try await store.fill(record)
            _ = try await store.takeFinalize(
                of: record.id, expecting: nil, lease: lease("a", at: 0))
            await #expect(throws: MetadataError.writerReplaced) {
                try await store.invalidateChunks(touching: Sample.touch(record))
            }
            _ = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("a"), fileID: .random())
            await #expect(throws: MetadataError.wrongState(.finalizing)) {
                try await store.invalidateChunks(touching: Sample.touch(record))
            }
            #expect(try await store.now(record)?.chunks.count == 3)
        },
        Case("a dropped chunk leaves the area's state, and the last one removes it") { store in
            let record = try await store.make()
            try await store.fill(record)
            _ = try await store.setStagingState("state", of: record.stagingKey, replacing: nil)
            try await store.invalidateChunks([1], of: record.id)
            #expect(try await store.stagingState(of: record.stagingKey) == "state")
            try await store.invalidateChunks([0, 2], of: record.id)
            #expect(try await store.stagingState(of: record.stagingKey) == nil)
        },
        Case("rows are bound to the bytes of one place") { store in
            try await store.bind(toBytesAt: "here")
            try await store.bind(toBytesAt: "here")
            await #expect(throws: MetadataError.foreignBytes("here")) {
                try await store.bind(toBytesAt: "there")
            }
        },
    ]

    static let locations = [
        Case("locations of chunks and partials come back as they were") { store in
            let record = try await store.make()
            var chunk = Sample.chunk(0)
            chunk.location = "part:\"abc\""
            var partial = Sample.partial(1)
            partial.location = "pieces:0+30+ff"
            _ = try await store.commit([chunk], touching: Sample.touch(record))
            try await store.savePartial(partial, touching: Sample.touch(record))
            let progress = try #require(try await store.now(record))
            #expect(progress.chunks == [chunk])
            #expect(progress.partials == [partial])
        },
        Case("a staging state changes only from what was expected") { store in
            let record = try await store.make()
            let key = record.stagingKey
            #expect(try await store.stagingState(of: key) == nil)
            #expect(try await store.setStagingState("one", of: key, replacing: nil) == "one")
            #expect(try await store.setStagingState("two", of: key, replacing: nil) == "one")
            #expect(try await store.setStagingState("two", of: key, replacing: "one") == "two")
            #expect(try await store.stagingState(of: key) == "two")
            #expect(try await store.setStagingState(nil, of: key, replacing: "two") == nil)
            await #expect(throws: MetadataError.notFound) {
                try await store.setStagingState("x", of: StagingKey(.random()), replacing: nil)
            }
        },
        Case("a staging state goes with the bytes, to an adopting session or to the garbage") {
            store in
            let record = try await store.make(Sample.session(expiresAt: Sample.time(10)))
            let key = record.stagingKey
            _ = try await store.setStagingState("state", of: key, replacing: nil)
            let outcome = try await store.createSession(
                Sample.session(createdAt: Sample.time(20)), idempotencyKey: nil,
                adopting: record.id)
            guard case .created(let adopting) = outcome else {
                Issue.record("a create without a key creates")
                return
            }
            #expect(adopting.stagingKey == key)
            #expect(try await store.stagingState(of: key) == "state")
            try await store.cancelSession(adopting.id, owner: adopting.owner)
            #expect(try await store.claimAll() == [.staging(key, state: "state")])
        },
        Case("the later of two equal blobs is the blob, and the earlier one is kept beside it") {
            store in
            let first = try await store.makeFile("same", location: "objects/1")
            let second = try await store.makeFile("same", location: "objects/2")
            #expect(second.location == "objects/2")
            #expect(
                try await store.file(first.id, owner: first.owner)?.location == "objects/2")
            let (key, other) = (StagingKey(first.sessionID), StagingKey(second.sessionID))
            // The rest of the later area is garbage. The earlier area goes together with its
            // object. Both objects can be found by their area.
            #expect(try await store.claimAll() == [.staging(other)])
            #expect(try await store.blobLocation(fromStaging: key) == "objects/1")
            #expect(try await store.blobLocation(fromStaging: other) == "objects/2")
            try await store.forget(.staging(other))
            try await store.deleteFile(first.id, owner: first.owner, at: Sample.time(20))
            #expect(try await store.claimAll() == [])
            #expect(try await store.file(second.id, owner: second.owner)?.location == "objects/2")
            try await store.deleteFile(second.id, owner: second.owner, at: Sample.time(20))
            #expect(try await store.blobLocation(fromStaging: key) == nil)
            #expect(try await store.claimAll() == [.staging(key), .staging(other)])
            // Equal bytes may be uploaded again.
            let third = try await store.makeFile("same", location: "objects/3")
            #expect(third.location == "objects/3")
        },
        Case("staged bytes of an ended session are left to the sweep, and bytes in use are not") {
            store in
            let record = try await store.make()
            try await store.addToGarbage(record.stagingKey)
            #expect(try await store.claimAll() == [])
            try await store.cancelSession(record.id, owner: record.owner)
            #expect(try await store.claimAll() == [.staging(record.stagingKey)])
            try await store.forget(.staging(record.stagingKey))
            try await store.addToGarbage(record.stagingKey)
            #expect(try await store.claimAll() == [.staging(record.stagingKey)])
        },
        Case("only the last claim of garbage forgets it") { store in
            let record = try await store.make()
            try await store.cancelSession(record.id, owner: record.owner)
            let garbage = Garbage.staging(record.stagingKey)
            #expect(try await store.claimAll(at: 100) == [garbage])
            #expect(try await store.claimAll(at: 200) == [garbage])
            try await store.forget(garbage, claimedAt: 100)
            #expect(try await store.claimAll(at: 300) == [garbage])
            try await store.forget(garbage, claimedAt: 300)
            #expect(try await store.claimAll(at: 400) == [])
        },
        Case("garbage that was claimed and added again stays to be removed") { store in
            let file = try await store.makeFile("bytes", location: "objects/1")
            let key = StagingKey(file.sessionID)
            #expect(try await store.claimAll() == [.staging(key)])
            try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(20))
            try await store.forget(.staging(key))
            #expect(try await store.claimAll() == [.staging(key)])
        },
    ]
}
