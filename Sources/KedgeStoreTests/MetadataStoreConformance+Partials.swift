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
            let touch = SessionTouch(id: file.sessionID, expiresAt: Sample.time(1))
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
