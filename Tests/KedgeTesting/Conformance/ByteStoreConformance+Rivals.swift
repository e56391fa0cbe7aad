internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel
internal import Testing

extension ByteStoreConformance {
    /// A file of one full chunk and a short one, and another file of the same size.
    private static func uploads() -> (ours: StagedUpload, rival: StagedUpload) {
        let ours = StagedUpload(byteCount: StagedUpload.chunkByteCount + 1234)
        var bytes = ours
        bytes.content = ours.content.map { ~$0 }
        return (ours, bytes)
    }

    static let rivals = [
        Case(reopening: "a rival lies beside a partial, and both go on elsewhere") { open in
            var (ours, rival) = uploads()
            var locations: [String?] = [nil, nil]
            for range in [0..<1000, 1000..<70_000] {
                let store = try await open()
                let area = try await store.openStaging(ours.key)
                let place = ours.range(0, byteCount: range.upperBound)
                let begun = ours.range(0, byteCount: range.lowerBound)
                let beside = try await area.openRival(begun, isKept: true)
                try await rival.write(range, ofChunk: 0, to: beside)
                try await ours.write(range, ofChunk: 0, to: area)
                locations[0] = try await area.savePartial(place, after: locations[0])
                locations[1] = try await beside.savePartial(place, after: locations[1])
                await beside.close()
                await area.close()
                await store.close()
            }
            let store = try await open()
            let area = try await store.openStaging(ours.key)
            let place = ours.range(0, byteCount: 70_000)
            let beside = try await area.openRival(place, isKept: true)
            try await rival.write(70_000..<90_000, ofChunk: 0, to: beside)
            try await beside.gather(place, after: locations[1])
            #expect(
                try await beside.bytes(at: 0, count: 90_000) == Array(rival.content.prefix(90_000)))
            await beside.close()
            for _ in 0..<2 { try await area.removeRival(ofChunk: 0) }
            try await ours.write(70_000..<StagedUpload.chunkByteCount, ofChunk: 0, to: area)
            try await ours.saveWritten(0, in: area, after: locations[0])
            try await ours.save(1, in: area)
            await area.close()
            let name = try await ours.promote(in: store)
            #expect(try await store.content(of: name) == ours.content)
            await store.close()
        },
        Case(reopening: "a partial that is set aside goes on beside other bytes, elsewhere") {
            open in
            let (ours, rival) = uploads()
            let place = ours.range(0, byteCount: 1000)
            let store = try await open()
            let area = try await store.openStaging(ours.key)
            try await ours.write(0..<1000, ofChunk: 0, to: area)
            let location = try await area.keepAsRival(
                place, location: try await area.savePartial(place, after: nil))
            try await rival.write(0..<1000, ofChunk: 0, to: area)
            _ = try await area.savePartial(place, after: nil)
            await area.close()
            await store.close()
            let other = try await open()
            let next = try await other.openStaging(ours.key)
            let beside = try await next.openRival(place, isKept: true)
            try await beside.gather(place, after: location)
            #expect(try await beside.bytes(at: 0, count: 1000) == Array(ours.content.prefix(1000)))
            await beside.close()
            await next.close()
            await other.close()
        },
        Case("a rival that is not kept is gone when it is closed") { store in
            let (ours, rival) = uploads()
            let area = try await store.openStaging(ours.key)
            try await ours.write(0..<100, ofChunk: 1, to: area)
            for _ in 0..<2 {
                let beside = try await area.openRival(ours.range(1, byteCount: 0), isKept: false)
                try await rival.write(0..<100, ofChunk: 1, to: beside)
                let start = ours.range(1).start
                #expect(
                    try await beside.bytes(at: start, count: 100)
                        == Array(rival.content[Int(start)..<Int(start) + 100]))
                #expect(
                    try await area.bytes(at: start, count: 100)
                        == Array(ours.content[Int(start)..<Int(start) + 100]))
                await beside.close()
            }
            await area.close()
            try await store.removeStaging(ours.key, state: nil, keeping: nil)
        },
    ]
}

extension LocalByteStoreConformance {
    static let rivals = [
        Case("rivals that have bytes are listed, and go with their area") { store in
            let key = StagingKey(.random())
            let area = try await store.openStaging(key)
            for index in [0, 7] {
                let place = ChunkRange(index: index, start: 100, byteCount: 0)
                let beside = try await area.openRival(place, isKept: true)
                try await beside.write(SampleBytes.buffer([1, 2, 3]), at: 100)
                _ = try await beside.savePartial(place, after: nil)
                await beside.close()
            }
            await #expect(throws: ByteStoreError.notFound) {
                try await area.openRival(
                    ChunkRange(index: 7, start: 100, byteCount: 4), isKept: true)
            }
            await area.close()
            let names = [0, 7].map { RivalName(key: key, index: $0) }
            #expect(Set(try await store.rivals()) == Set(names))
            #expect(try await store.stagingKeys() == [key])
            for _ in 0..<2 { try await store.removeRival(names[0]) }
            #expect(try await store.rivals() == [names[1]])
            try await store.removeStaging(key)
            #expect(try await store.rivals().isEmpty)
        },
        Case("a rival goes with its area, quarantined or removed") { store in
            let key = StagingKey(.random())
            for isThere in [true, false] {
                let area = try await store.openStaging(key)
                let place = ChunkRange(index: 3, start: 0, byteCount: 0)
                let beside = try await area.openRival(place, isKept: true)
                try await beside.write(SampleBytes.buffer([1]), at: 0)
                await beside.close()
                await area.close()
                if isThere { try await store.quarantine(key) }
            }
            try await store.removeStaging(key)
            #expect(try await store.rivals().isEmpty)
        },
    ]
}
