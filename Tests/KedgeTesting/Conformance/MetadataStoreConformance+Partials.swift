internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    static let partials = [
        Case("a partial is recorded with the touch and replaced by the next one") { store in
            let record = try await store.make()
            try await store.savePartial(Sample.partial(1), touching: Sample.touch(record))
            var longer = Sample.partial(1, byteCount: 60)
            longer.declaredDigest = nil
            try await store.savePartial(
                longer, touching: Sample.touch(record, until: 2000, prefix: 60))
            let progress = try #require(try await store.now(record))
            #expect(progress.partials == [longer])
            #expect(progress.record.expiresAt == Sample.time(2000))
            #expect(progress.record.prefix?.offset == 60)
        },
        Case("a committed chunk is left alone by a late partial") { store in
            let record = try await store.make()
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            try await store.savePartial(Sample.partial(0), touching: Sample.touch(record))
            let progress = try #require(try await store.now(record))
            #expect(progress.chunks == [Sample.chunk(0)])
            #expect(progress.partials.isEmpty)
        },
        Case("a partial as long as its chunk, or empty, is refused") { store in
            let record = try await store.make()
            for wrong in [
                Sample.partial(0, byteCount: 100), Sample.partial(2, byteCount: 50),
                Sample.partial(0, byteCount: 0), Sample.partial(3),
            ] {
                await expectRefusal {
                    try await store.savePartial(wrong, touching: Sample.touch(record))
                }
            }
            #expect(try await store.now(record)?.partials == [])
        },
        Case("a partial needs a session that is there and open") { store in
            let unknown = Sample.session()
            await #expect(throws: MetadataError.notFound) {
                try await store.savePartial(Sample.partial(0), touching: Sample.touch(unknown))
            }
            let file = try await store.makeFile()
            let touch = SessionUpdate(id: file.sessionID, expiresAt: Sample.time(1))
            await #expect(throws: MetadataError.wrongState(.completed)) {
                try await store.savePartial(Sample.partial(0), touching: touch)
            }
        },
        Case("a discarded partial is forgotten, and discarding again does nothing") { store in
            let record = try await store.make()
            try await store.savePartial(Sample.partial(0), touching: Sample.touch(record))
            try await store.savePartial(Sample.partial(1), touching: Sample.touch(record))
            for _ in 0..<2 { try await store.discardPartial(of: record.id, index: 0, by: nil) }
            #expect(try await store.now(record)?.partials == [Sample.partial(1)])
            try await store.discardPartial(of: .random(), index: 0, by: nil)
        },
        Case("a partial in doubt stays in doubt until it is saved without doubt") { store in
            let record = try await store.make()
            var partial = Sample.partial(1)
            for isInDoubt in [false, true, false] {
                partial.isInDoubt = isInDoubt
                try await store.savePartial(partial, touching: Sample.touch(record))
                #expect(try await store.now(record)?.partials == [partial])
            }
        },
    ]

    static let rivals = [
        Case("a partial and a rival of a chunk stand side by side") { store in
            let record = try await store.make()
            let touch = Sample.touch(record)
            for index in [1, 0] {
                try await store.savePartial(Sample.rival(index), touching: touch)
                try await store.savePartial(Sample.partial(index, byteCount: 10), touching: touch)
            }
            try await store.savePartial(Sample.partial(0, byteCount: 20), touching: touch)
            let longer = Sample.rival(1, byteCount: 70)
            try await store.savePartial(longer, touching: touch)
            #expect(
                try await store.now(record)?.partials == [
                    Sample.partial(0, byteCount: 20), Sample.partial(1, byteCount: 10),
                    Sample.rival(0), longer,
                ])
            try await store.discardPartial(of: record.id, index: 0, isRival: true, by: nil)
            try await store.discardPartial(of: record.id, index: 1, by: nil)
            #expect(
                try await store.now(record)?.partials == [Sample.partial(0, byteCount: 20), longer])
        },
        Case("a rival without a digest, or as long as its chunk, is refused") { store in
            let record = try await store.make()
            var unnamed = Sample.rival(0)
            unnamed.declaredDigest = nil
            for wrong in [unnamed, Sample.rival(0, byteCount: 100), Sample.rival(3)] {
                await expectRefusal {
                    try await store.savePartial(wrong, touching: Sample.touch(record))
                }
            }
            #expect(try await store.now(record)?.partials == [])
        },
        Case("a committed chunk removes its rival, and a late rival is ignored") { store in
            let record = try await store.make()
            let touch = Sample.touch(record)
            for index in 0..<2 {
                try await store.savePartial(Sample.rival(index), touching: touch)
            }
            _ = try await store.commit([Sample.chunk(0)], touching: touch)
            try await store.savePartial(Sample.rival(0), touching: touch)
            #expect(try await store.now(record)?.partials == [Sample.rival(1)])
        },
        Case("a rival claims nothing of the file's size") { store in
            let record = try await store.make(Sample.session(fileSize: nil))
            try await store.savePartial(Sample.rival(1), touching: Sample.touch(record))
            try await store.declareSize(110, of: record.id)
            #expect(
                try await store.unfinishedSessions().first { $0.record.id == record.id }?
                    .claimedEnd == 0)
        },
        Case("rivals go when chunks are invalidated, and with the session") { store in
            for isWhole in [false, true] {
                let record = try await store.make()
                let touch = Sample.touch(record)
                _ = try await store.commit([Sample.chunk(0)], touching: touch)
                try await store.savePartial(Sample.rival(1), touching: touch)
                if isWhole {
                    try await store.invalidateChunks(touching: touch)
                } else {
                    try await store.invalidateChunks([0], of: record.id)
                }
                #expect(try await store.now(record)?.partials == [])
                try await store.savePartial(Sample.rival(1), touching: touch)
                try await store.cancelSession(record.id, owner: record.owner)
                #expect(try await store.now(record)?.partials == [])
            }
        },
        Case("a session that adopts another's bytes gets its rivals") { store in
            let old = try await store.make()
            try await store.savePartial(Sample.partial(1), touching: Sample.touch(old))
            try await store.savePartial(Sample.rival(1), touching: Sample.touch(old))
            let new = Sample.session(createdAt: Sample.time(2000), expiresAt: Sample.time(3000))
            _ = try await store.createSession(new, idempotencyKey: nil, adopting: old.id)
            #expect(
                try await store.now(new)?.partials == [Sample.partial(1), Sample.rival(1)])
            #expect(try await store.now(old)?.partials == [])
        },
    ]

    static let sizes = [
        Case("an unknown size can be declared once") { store in
            let record = try await store.make(Sample.session(fileSize: nil))
            try await store.fill(record)
            for _ in 0..<2 { try await store.declareSize(250, of: record.id) }
            #expect(try await store.now(record)?.record.fileSize == 250)
            await #expect(throws: MetadataError.wrongState(.open)) {
                try await store.declareSize(251, of: record.id)
            }
            await #expect(throws: MetadataError.notFound) {
                try await store.declareSize(1, of: .random())
            }
        },
        Case("a size below what was received is refused") { store in
            let record = try await store.make(Sample.session(fileSize: nil))
            _ = try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            try await store.savePartial(Sample.partial(1), touching: Sample.touch(record))
            await expectRefusal { try await store.declareSize(129, of: record.id) }
            try await store.declareSize(130, of: record.id)
        },
        Case("a canceled session gets no size") { store in
            let record = try await store.make(Sample.session(fileSize: nil))
            try await store.cancelSession(record.id, owner: record.owner)
            await #expect(throws: MetadataError.wrongState(.canceled)) {
                try await store.declareSize(1, of: record.id)
            }
        },
    ]
}
