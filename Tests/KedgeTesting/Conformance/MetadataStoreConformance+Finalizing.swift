internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    static let finalizing = [
        Case("finalizing begins once and keeps the values stored first") { store in
            let record = try await store.make()
            try await store.fill(record)
            let fileID = FileID.random()
            let first = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("a"), fileID: fileID)
            #expect(first.state == .finalizing)
            #expect(first.fileID == fileID)
            #expect(first.finalDigest == Sample.digest("a"))
            let second = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("b"), fileID: .random())
            #expect(second == first)
            await #expect(throws: MetadataError.wrongState(.finalizing)) {
                try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            }
        },
        Case("finalizing does not begin while chunks or the size are missing") { store in
            for size in [Sample.fileSize, nil] {
                let record = try await store.make(Sample.session(fileSize: size))
                _ = try await store.commit(
                    [Sample.chunk(0), Sample.chunk(2)], touching: Sample.touch(record))
                await expectRefusal {
                    _ = try await store.beginFinalize(
                        of: record.id, digest: Sample.digest("a"), fileID: .random())
                }
                #expect(try await store.now(record)?.record.state == .open)
            }
        },
        Case("completing makes the file and the session's last state, once") { store in
            let record = try await store.make()
            try await store.fill(record)
            let begun = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("a"), fileID: .random())
            let file = try await store.completeFinalize(of: record.id, at: Sample.time(5))
            let expected = FileRecord(
                id: try #require(begun.fileID), owner: record.owner, sessionID: record.id,
                fileName: record.fileName, mimeType: record.mimeType, byteCount: Sample.fileSize,
                digest: Sample.digest("a"), chunkSize: Sample.chunkSize, createdAt: Sample.time(5))
            #expect(file == expected)
            #expect(try await store.completeFinalize(of: record.id, at: Sample.time(9)) == file)
            #expect(try await store.file(file.id, owner: record.owner) == file)
            let completed = try #require(try await store.now(record)?.record)
            #expect(completed.state == .completed)
            #expect(completed.fileID == file.id)
            let again = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("b"), fileID: .random())
            #expect(again == completed)
        },
        Case("completing needs a session that is finalizing") { store in
            let record = try await store.make()
            await #expect(throws: MetadataError.wrongState(.open)) {
                try await store.completeFinalize(of: record.id, at: Sample.time(1))
            }
            await #expect(throws: MetadataError.notFound) {
                try await store.completeFinalize(of: .random(), at: Sample.time(1))
            }
            await #expect(throws: MetadataError.notFound) {
                try await store.beginFinalize(
                    of: .random(), digest: Sample.digest("a"), fileID: .random())
            }
        },
        Case("a file keeps the modification time of the metadata, if it is one") { store in
            for (text, time) in [
                ("2026-11-25T21:41:33.123456789Z", "2026-11-25T21:41:33.123456789Z"),
                ("1901-01-01T00:00:00Z", "1901-01-01T00:00:00.000000000Z"), ("yesterday", nil),
            ] {
                var session = Sample.session(fileSize: 0)
                session.metadata["mtime"] = text
                let record = try await store.make(session)
                _ = try await store.beginFinalize(
                    of: record.id, digest: Sample.digest(""), fileID: .random())
                let file = try await store.completeFinalize(of: record.id, at: Sample.time(1))
                #expect(file.modified?.text == time)
                #expect(try await store.file(file.id, owner: record.owner) == file)
            }
        },
        Case("a path that cannot be stored does not keep a file from being finished") { store in
            // Earlier versions accepted any text.
            var session = Sample.session(fileSize: 0)
            session.metadata["path"] = String(repeating: "p", count: 2000)
            let record = try await store.make(session)
            _ = try await store.beginFinalize(
                of: record.id, digest: Sample.digest(""), fileID: .random())
            let file = try await store.completeFinalize(of: record.id, at: Sample.time(1))
            #expect(file.path == nil)
        },
        Case("a file of no bytes is finalized without chunks") { store in
            let record = try await store.make(Sample.session(fileSize: 0))
            _ = try await store.beginFinalize(
                of: record.id, digest: Sample.digest(""), fileID: .random())
            let file = try await store.completeFinalize(of: record.id, at: Sample.time(1))
            #expect(file.byteCount == 0)
            #expect(try await store.chunkDigests(of: file) == [])
        },
        Case("a reopened session takes chunks again and may end with another digest") { store in
            let record = try await store.make()
            try await store.fill(record)
            _ = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("a"), fileID: .random())
            for _ in 0..<2 { try await store.reopen(record.id) }
            let reopened = try #require(try await store.now(record)?.record)
            #expect(reopened.state == .open)
            #expect(reopened.fileID == nil)
            #expect(reopened.finalDigest == nil)
            try await store.invalidateChunks([1], of: record.id)
            try await store.fill(record)
            let begun = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("b"), fileID: .random())
            #expect(begun.finalDigest == Sample.digest("b"))
            #expect(try await store.claimAll() == [.blob(Sample.digest("a"))])
        },
        Case("finalizing sessions of every owner are listed until they end") { store in
            _ = try await store.make()
            let records = [
                try await store.make(),
                try await store.make(Sample.session(owner: Sample.stranger)),
            ]
            for record in records {
                try await store.fill(record)
                _ = try await store.beginFinalize(
                    of: record.id, digest: Sample.digest("a"), fileID: .random())
            }
            let found = try await store.finalizingSessions()
            #expect(Set(found.map(\.id)) == Set(records.map(\.id)))
            #expect(Set(found.map(\.owner)) == [Sample.owner, Sample.stranger])
            _ = try await store.completeFinalize(of: records[0].id, at: Sample.time(5))
            try await store.reopen(records[1].id)
            #expect(try await store.finalizingSessions() == [])
        },
        Case("open final uploads are listed in pages, with their partial uploads") {
            store in
            var records: [SessionRecord] = []
            for count in 1...4 {
                var record = Sample.session()
                record.sourceIDs = (0..<count).map { _ in .random() }
                records.append(try await store.make(record))
            }
            _ = try await store.make()
            try await store.cancelSession(records[3].id, owner: records[3].owner)
            let open = records.prefix(3).sorted { $0.id.text < $1.id.text }
            #expect(try await store.openConcatenations(after: nil, limit: 9) == open)
            #expect(
                try await store.openConcatenations(after: nil, limit: 2) == Array(open.prefix(2)))
            let rest = try await store.openConcatenations(after: open[1].id, limit: 9)
            #expect(rest == [open[2]])
            #expect(try await store.openConcatenations(after: open[2].id, limit: 9) == [])
            let stored = try await store.progress(of: open[0].id, owner: open[0].owner)
            #expect(stored?.record.sourceIDs == open[0].sourceIDs)
        },
        Case("a commit of nothing keeps a session for longer") { store in
            let record = try await store.make()
            let touch = Sample.touch(record, until: 2000)
            #expect(try await store.commit([], touching: touch) == [])
            let stored = try await store.progress(of: record.id, owner: record.owner)
            #expect(stored?.record.expiresAt == Sample.time(2000))
        },
        Case("a completed session is not reopened") { store in
            let file = try await store.makeFile()
            await #expect(throws: MetadataError.wrongState(.completed)) {
                try await store.reopen(file.sessionID)
            }
        },
        Case("a session that lost chunks while finalizing is not completed") { store in
            let record = try await store.make()
            try await store.fill(record)
            _ = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("a"), fileID: .random())
            try await store.invalidateChunks([1], of: record.id)
            await expectRefusal {
                _ = try await store.completeFinalize(of: record.id, at: Sample.time(1))
            }
        },
    ]

    static let canceling = [
        Case("a canceled session forgets its chunks and leaves its bytes to the sweep") { store in
            let record = try await store.make()
            try await store.fill(record)
            for _ in 0..<2 { try await store.cancelSession(record.id, owner: record.owner) }
            let progress = try #require(try await store.now(record))
            #expect(progress.record.state == .canceled)
            #expect(progress.chunks.isEmpty)
            #expect(try await store.claimAll() == [.staging(record.stagingKey)])
        },
        Case("a session canceled while finalizing leaves its blob to the sweep as well") { store in
            let record = try await store.make()
            try await store.fill(record)
            _ = try await store.beginFinalize(
                of: record.id, digest: Sample.digest("a"), fileID: .random())
            try await store.cancelSession(record.id, owner: record.owner)
            #expect(
                try await store.claimAll()
                    == [.staging(record.stagingKey), .blob(Sample.digest("a"))])
            await #expect(throws: MetadataError.wrongState(.canceled)) {
                try await store.completeFinalize(of: record.id, at: Sample.time(1))
            }
        },
        Case("only its owner cancels a session, and only before it is a file") { store in
            let record = try await store.make()
            await #expect(throws: MetadataError.notFound) {
                try await store.cancelSession(record.id, owner: Sample.stranger)
            }
            #expect(try await store.now(record)?.record.state == .open)
            let file = try await store.makeFile()
            await #expect(throws: MetadataError.wrongState(.completed)) {
                try await store.cancelSession(file.sessionID, owner: file.owner)
            }
        },
        Case("an empty session becomes a file with bytes that its owner has") { store in
            let stored = try await store.makeFile("stored", at: 10)
            let shape = Sample.shape(verifiedSince: 10)
            let offers = try await store.storedFiles(like: shape, .any, limit: 4)
            #expect(
                offers == [
                    StoredFile(
                        remoteFileId: stored.id, fileHashSha256: Sample.digest("stored"),
                        firstChunkSha256: Sample.chunk(0).digest)
                ])
            var session = Sample.session()
            session.metadata[FilePath.metadataKey] = "copies/log.txt"
            let record = try await store.make(session)
            let id = FileID.random()
            let file = try #require(
                try await store.completeFinalize(
                    of: record.id, from: shape, digest: stored.digest, fileID: id,
                    at: Sample.time(20)))
            #expect(
                file.id == id && file.digest == stored.digest && file.createdAt == Sample.time(20))
            #expect(file.path == "copies/log.txt" && file.chunkSize == stored.chunkSize)
            let (copied, original) = (
                try await store.chunkDigests(of: file), try await store.chunkDigests(of: stored)
            )
            #expect(copied == original)
            let completed = try #require(try await store.now(record))
            #expect(completed.record.state == .completed && completed.record.fileID == id)
            #expect(completed.chunks.map(\.digest) == original)
            // A repeated request gets the same file.
            let again = try await store.completeFinalize(
                of: record.id, from: shape, digest: stored.digest, fileID: .random(),
                at: Sample.time(30))
            #expect(again == file)
            #expect(
                try await store.completeFinalize(
                    of: record.id, from: shape, digest: Sample.digest("other"), fileID: .random(),
                    at: Sample.time(30)) == nil)
            // Nothing but the staging area of the session is garbage, and each file keeps the blob.
            #expect(try await store.claimAll() == [.staging(record.stagingKey)])
            try await store.deleteFile(stored.id, owner: Sample.owner, at: Sample.time(40))
            #expect(try await store.claimAll(at: 6000) == [.staging(record.stagingKey)])
            #expect(try await store.chunkDigests(of: file) == original)
            try await store.deleteFile(file.id, owner: Sample.owner, at: Sample.time(50))
            #expect(
                try await store.claimAll(at: 7000)
                    == [.staging(record.stagingKey), .blob(stored.digest)])
        },
        Case("stored bytes are used only by their owner, whole, and while they are trusted") {
            store in
            let stored = try await store.makeFile("stored", at: 10)
            func offers(_ shape: StoredFileShape) async throws -> [FileID] {
                try await store.storedFiles(like: shape, .any, limit: 4).map(\.remoteFileId)
            }
            func completed(_ record: SessionRecord, _ shape: StoredFileShape) async throws -> Bool {
                try await store.completeFinalize(
                    of: record.id, from: shape, digest: stored.digest, fileID: .random(),
                    at: Sample.time(20)) != nil
            }
            let shape = Sample.shape(verifiedSince: 10)
            // Verified too long ago, by another owner, of another size or chunk size.
            for other in [
                Sample.shape(verifiedSince: 11),
                Sample.shape(owner: Sample.stranger, verifiedSince: 0),
                Sample.shape(byteCount: 249, verifiedSince: 0),
                Sample.shape(chunkSize: 200, verifiedSince: 0),
            ] {
                #expect(try await offers(other) == [])
                let record = try await store.make(
                    Sample.session(
                        owner: other.owner, fileSize: other.byteCount, chunkSize: other.chunkSize))
                #expect(try await !completed(record, other))
                #expect(try await store.now(record)?.record.state == .open)
            }
            // A session of another owner, with bytes, or with another declared digest.
            let foreign = try await store.make(Sample.session(owner: Sample.stranger))
            #expect(try await !completed(foreign, shape))
            let begun = try await store.make()
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(begun))
            #expect(try await !completed(begun, shape))
            let partial = try await store.make()
            try await store.savePartial(Sample.partial(1), touching: Sample.touch(partial))
            #expect(try await !completed(partial, shape))
            let declared = try await store.make(
                Sample.session(declaredDigest: Sample.digest("declared")))
            #expect(try await !completed(declared, shape))
            // Known to be damaged, and deleted.
            let empty = try await store.make()
            #expect(try await store.markDamaged(stored, at: Sample.time(15)))
            #expect(try await offers(shape) == [])
            #expect(try await !completed(empty, shape))
            let newer = try await store.makeFile("stored", at: 18)
            #expect(try await offers(shape) == [newer.id])
            for id in [newer.id, stored.id] {
                try await store.deleteFile(id, owner: Sample.owner, at: Sample.time(19))
            }
            #expect(try await offers(shape) == [])
            #expect(try await !completed(empty, shape))
            #expect(try await store.now(empty)?.record.state == .open)
        },
        Case("stored files are offered newest first, each content once") { store in
            for (content, second) in [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("d", 5), ("e", 6)] {
                _ = try await store.makeFile(content, at: Int64(second))
            }
            let offers = try await store.storedFiles(
                like: Sample.shape(verifiedSince: 0), .any, limit: 4)
            #expect(offers.map(\.fileHashSha256) == ["e", "d", "c", "a"].map(Sample.digest))
            func find(_ match: StoredFileMatch) async throws -> [SHA256Digest] {
                try await store.storedFiles(
                    like: Sample.shape(verifiedSince: 0), match, limit: 4
                ).map(\.fileHashSha256)
            }
            #expect(try await find(.whole(Sample.digest("b"))) == [Sample.digest("b")])
            #expect(try await find(.whole(Sample.digest("x"))) == [])
            #expect(try await find(.firstChunk(Sample.chunk(0).digest)).count == 4)
            #expect(try await find(.firstChunk(Sample.digest("b"))) == [])
        },
    ]
}
