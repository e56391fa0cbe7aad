internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel
internal import Testing

extension QuotaConformance {
    /// Makes an open session with all its bytes, as a partial upload.
    private static func makeSource(_ store: any QuotaStore) async throws -> SessionRecord {
        let record = try await store.make(Sample.session(fileSize: 100))
        _ = try await store.commit(
            [Sample.chunk(0)], touching: Sample.touch(record, until: 100_000))
        return record
    }

    private static func makeFinal(_ sources: [SessionRecord], fileSize: Int64?) -> SessionRecord {
        var record = Sample.session(fileSize: fileSize)
        record.sourceIDs = sources.map(\.id)
        return record
    }

    /// Makes a file of a final upload.
    private static func complete(
        _ record: SessionRecord, _ store: any QuotaStore
    ) async throws -> FileRecord {
        _ = try await store.commit(
            [0, 1].map { Sample.chunk($0) }, touching: Sample.touch(record))
        _ = try await store.beginFinalize(
            of: record.id, digest: Sample.digest("final"), fileID: .random())
        return try await store.completeFinalize(of: record.id, at: Sample.time(10))
    }

    static let finalUploads = [
        Case("a final upload reserves the known sizes of its partial uploads") { store in
            let sources = [try await makeSource(store), try await makeSource(store)]
            let record = makeFinal(sources, fileSize: nil)
            let quota = QuotaLimits(storedBytes: 399)
            guard
                case .quotaExceeded(let refusal) = try await create(
                    record, in: store, within: quota)
            else {
                Issue.record("expected a refusal")
                return
            }
            #expect(refusal.reservedBytes == 200)
            let more = QuotaLimits(storedBytes: 400)
            #expect(try await create(record, in: store, within: more) == .created(record))
            #expect(try await sums(store) == [0, 400, 3])
            try await store.declareSize(200, of: record.id, within: more)
            #expect(try await sums(store) == [0, 400, 3])
        },
        Case("a completed final upload ends the reservations of its partial uploads") { store in
            let sources = [try await makeSource(store), try await makeSource(store)]
            let record = makeFinal(sources, fileSize: 200)
            #expect(try await create(record, in: store, within: .none) == .created(record))
            _ = try await complete(record, store)
            #expect(try await sums(store) == [200, 0, 2])
            for source in sources {
                #expect(try await store.now(source)?.record.expiresAt == Sample.time(3610))
            }
            _ = try await store.expireSessions(
                now: Sample.time(3610), graceEnd: Sample.time(0), limit: 10)
            #expect(try await sums(store) == [200, 0, 0])
        },
        Case("a partial upload without a reservation needs room to become a file") { store in
            let source = try await makeSource(store)
            let record = makeFinal([source, try await makeSource(store)], fileSize: 200)
            #expect(try await create(record, in: store, within: .none) == .created(record))
            let file = try await complete(record, store)
            let quota = QuotaLimits(storedBytes: 299)
            let id = FileID.random()
            let refusal = await refused {
                _ = try await store.beginFinalize(
                    of: source.id, digest: Sample.digest("part"), fileID: id, within: quota)
            }
            #expect(refusal?.kind == .storedBytes)
            #expect(try await store.now(source)?.record.state == .open)
            try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(20))
            _ = try await store.beginFinalize(
                of: source.id, digest: Sample.digest("part"), fileID: id, within: quota)
            _ = try await store.completeFinalize(of: source.id, at: Sample.time(30))
            #expect(try await sums(store) == [100, 0, 1])
        },
        Case("an emptied partial upload without a reservation takes no stored bytes") { store in
            let stored = try await makeSource(store)
            let digest = Sample.digest("part")
            _ = try await store.beginFinalize(of: stored.id, digest: digest, fileID: .random())
            _ = try await store.completeFinalize(of: stored.id, at: Sample.time(10))
            let source = try await makeSource(store)
            let record = makeFinal([source, try await makeSource(store)], fileSize: 200)
            #expect(try await create(record, in: store, within: .none) == .created(record))
            _ = try await complete(record, store)
            try await store.invalidateChunks([0], of: source.id)
            let shape = Sample.shape(byteCount: 100, verifiedSince: 10)
            let file = try await store.completeFinalize(
                of: source.id, from: shape, digest: digest, fileID: .random(),
                at: Sample.time(20))
            #expect(file == nil)
            #expect(try await sums(store) == [300, 0, 2])
            // A session with a reservation does.
            let other = try await store.make(Sample.session(fileSize: 100))
            let copy = try await store.completeFinalize(
                of: other.id, from: shape, digest: digest, fileID: .random(),
                at: Sample.time(20))
            #expect(copy != nil)
            #expect(try await sums(store) == [400, 0, 2])
        },
    ]

    static let owners = [
        Case("the limits of an owner replace those of the settings") { store in
            let settings = QuotaLimits(storedBytes: 1, openSessions: 1, fileBytes: 1)
            try await store.setLimits(
                OwnerLimits(maxStoredBytes: 500, maxOpenSessions: 0), of: Sample.owner)
            let large = try await create(Sample.session(), in: store, within: settings)
            guard case .quotaExceeded(let refusal) = large, refusal.kind == .fileBytes else {
                Issue.record("expected a refusal by the settings, not \(large)")
                return
            }
            try await store.setLimits(
                OwnerLimits(maxStoredBytes: 500, maxOpenSessions: 0, maxFileBytes: 0),
                of: Sample.owner)
            for _ in 0..<2 {
                let record = Sample.session()
                #expect(try await create(record, in: store, within: settings) == .created(record))
            }
            let third = try await create(Sample.session(fileSize: 1), in: store, within: settings)
            guard case .quotaExceeded = third else {
                Issue.record("expected a refusal, not \(third)")
                return
            }
            let quota = try await store.quota(of: Sample.owner, within: settings)
            #expect(quota.limits == QuotaLimits(storedBytes: 500))
            #expect(
                try await store.owner(Sample.owner)
                    == OwnerRecord(
                        owner: Sample.owner,
                        limits: OwnerLimits(
                            maxStoredBytes: 500, maxOpenSessions: 0, maxFileBytes: 0),
                        usage: OwnerUsage(reservedBytes: 500, openSessions: 2)))
        },
        Case("a limit below the usage removes nothing and lets nothing grow") { store in
            let file = try await store.makeFile()
            try await store.setLimits(OwnerLimits(maxStoredBytes: 1), of: Sample.owner)
            let refused = try await create(Sample.session(fileSize: 1), in: store, within: .none)
            guard case .quotaExceeded = refused else {
                Issue.record("expected a refusal, not \(refused)")
                return
            }
            #expect(try await store.file(file.id, owner: file.owner) == file)
            let empty = Sample.session(fileSize: 0)
            #expect(try await create(empty, in: store, within: .none) == .created(empty))
        },
        Case("owners are listed in the order of their text, and can be blocked") { store in
            #expect(try await store.owner(Sample.owner) == nil)
            _ = try await store.make()
            for name in ["b", "a"] { try await store.setBlocked(true, of: OwnerID(name)) }
            for _ in 0..<2 { try await store.setBlocked(false, of: OwnerID("b")) }
            let all = try await store.owners(after: nil, limit: 10)
            #expect(all.map(\.owner.text) == ["a", "b", "owner"])
            #expect(all.map(\.isBlocked) == [true, false, false])
            #expect(
                try await store.owners(after: OwnerID("a"), limit: 1).map(\.owner.text) == ["b"])
            #expect(try await store.owner(OwnerID("a"))?.isBlocked == true)
            try await store.setLimits(OwnerLimits(maxOpenSessions: 7), of: OwnerID("a"))
            #expect(try await store.owner(OwnerID("a"))?.isBlocked == true)
        },
        Case(reopening: "limits, blocks and sums are there after opening again") { open in
            let store = try await open()
            _ = try await store.makeFile()
            try await store.setLimits(OwnerLimits(maxFileBytes: 5), of: Sample.owner)
            try await store.setBlocked(true, of: Sample.owner)
            try await store.close()
            let again = try await open()
            #expect(
                try await again.owner(Sample.owner)
                    == OwnerRecord(
                        owner: Sample.owner, limits: OwnerLimits(maxFileBytes: 5),
                        usage: OwnerUsage(storedBytes: 250), isBlocked: true))
            try await again.close()
        },
        Case("a repair of right sums changes nothing") { store in
            _ = try await store.makeFile()
            _ = try await store.make(Sample.session(fileSize: 40))
            for owner in [Sample.owner, Sample.stranger] { try await store.repairQuota(of: owner) }
            #expect(try await sums(store) == [250, 40, 1])
            #expect(try await sums(store, of: Sample.stranger) == [0, 0, 0])
        },
    ]
}
