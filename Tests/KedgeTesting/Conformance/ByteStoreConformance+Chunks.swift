internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel
internal import Testing

extension ByteStoreConformance {
    /// Size of a file of two full chunks and a short one.
    private static let sampleByteCount = 2 * StagedUpload.chunkByteCount + 1234

    static let areas = [
        Case("bytes read back as they were written, before they are saved") { store in
            let area = try await store.openStaging(StagingKey(.random()))
            try await area.write(SampleBytes.buffer([4, 5, 6]), at: 3)
            try await area.write(SampleBytes.buffer([1, 2, 3]), at: 0)
            #expect(try await area.bytes(at: 1, count: 4) == [2, 3, 4, 5])
            await area.close()
        },
        Case("a read appends to the buffer and takes no more than asked for") { store in
            let area = try await store.openStaging(StagingKey(.random()))
            try await area.write(SampleBytes.buffer([1, 2, 3, 4]), at: 0)
            let buffer = SampleBytes.buffer(capacity: 3)
            try await area.read(into: buffer, at: 0, byteCount: 1)
            #expect(Array(buffer.bytes) == [1])
            try await area.read(into: buffer, at: 1, byteCount: 100)
            #expect(Array(buffer.bytes) == [1, 2, 3])
            await area.close()
        },
        Case("a closed area refuses and closes again without harm") { store in
            let area = try await store.openStaging(StagingKey(.random()))
            await area.close()
            await area.close()
            await #expect(throws: ByteStoreError.self) {
                try await area.write(SampleBytes.buffer([1]), at: 0)
            }
        },
        Case("the rest of an area can be removed, also when nothing is left") { store in
            var upload = StagedUpload(byteCount: sampleByteCount)
            let area = try await store.openStaging(upload.key)
            try await upload.save(0, in: area)
            try await upload.write(0..<100, ofChunk: 1, to: area)
            _ = try await area.savePartial(upload.range(1, byteCount: 100), after: nil)
            await area.close()
            for _ in 0..<2 { try await store.removeStaging(upload.key, state: nil, keeping: nil) }
        },
        Case("a working store passes its health check, names its place and has space") { store in
            try await store.checkHealth()
            try await store.checkHealth()
            #expect(try await store.availableBytes() > 0)
            #expect(try await store.identity() == store.identity())
        },
    ]

    static let chunks = [
        Case("chunks saved in any order and at once make the file") { store in
            var upload = StagedUpload(byteCount: sampleByteCount)
            let area = try await store.openStaging(upload.key)
            let empty = upload
            upload.chunks = try await withThrowingTaskGroup { group in
                for index in [2, 0, 1] {
                    group.addTask {
                        var part = empty
                        try await part.save(index, in: area)
                        return part.chunks
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            await area.close()
            let name = try await upload.promote(in: store)
            #expect(try await store.content(of: name) == upload.content)
        },
        Case(reopening: "each chunk may be saved by another process") { open in
            var upload = StagedUpload(byteCount: sampleByteCount)
            for index in 0..<upload.chunkCount {
                let store = try await open()
                let area = try await store.openStaging(upload.key)
                try await upload.save(index, in: area)
                await area.close()
                await store.close()
            }
            let store = try await open()
            let name = try await upload.promote(in: store)
            #expect(try await store.content(of: name) == upload.content)
            await store.close()
        },
        Case(reopening: "a chunk goes on where its saved first bytes end, wherever that is") {
            open in
            var upload = StagedUpload(byteCount: sampleByteCount)
            var location: String?
            for range in [0..<1000, 1000..<70_000] {
                let store = try await open()
                let area = try await store.openStaging(upload.key)
                try await upload.write(range, ofChunk: 1, to: area)
                location = try await area.savePartial(
                    upload.range(1, byteCount: range.upperBound), after: location)
                await area.close()
                await store.close()
            }
            let store = try await open()
            let area = try await store.openStaging(upload.key)
            try await upload.write(70_000..<StagedUpload.chunkByteCount, ofChunk: 1, to: area)
            try await upload.saveWritten(1, in: area, after: location)
            try await upload.save(0, in: area)
            try await upload.save(2, in: area)
            await area.close()
            let name = try await upload.promote(in: store)
            #expect(try await store.content(of: name) == upload.content)
            await store.close()
        },
        Case("a chunk that was saved twice is saved") { store in
            var upload = StagedUpload(byteCount: sampleByteCount)
            try await upload.saveAll(in: store)
            var again = upload
            again.chunks = []
            try await again.saveAll(in: store)
            // Either of the two recorded locations must do.
            let name = try await again.promote(in: store)
            #expect(try await store.content(of: name) == upload.content)
        },
        Case(reopening: "an assembled file reads back from end to end, also elsewhere") { open in
            var upload = StagedUpload(byteCount: sampleByteCount)
            let store = try await open()
            try await upload.saveAll(in: store)
            for _ in 0..<2 { try await store.assemble(upload.file) }
            await store.close()
            let other = try await open()
            let area = try await other.openStaging(upload.key)
            let start = StagedUpload.chunkByteCount - 10
            #expect(
                try await area.bytes(at: Int64(start), count: 20)
                    == Array(upload.content[start..<start + 20]))
            await area.close()
            let name = try await upload.promote(in: other)
            #expect(try await other.content(of: name) == upload.content)
            await other.close()
        },
    ]
}
