internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel
internal import Testing

extension LocalByteStoreConformance {
    static let staging = [
        Case("bytes that are not there are not found") { store in
            let area = try await store.openStaging(StagingKey(.random()))
            try await area.write(SampleBytes.buffer([1, 2]), at: 0)
            await #expect(throws: ByteStoreError.notFound) {
                try await area.bytes(at: 1, count: 2)
            }
            await #expect(throws: ByteStoreError.notFound) {
                try await area.bytes(at: 50, count: 1)
            }
            await area.close()
        },
        Case("writes far apart and at once all arrive") { store in
            let area = try await store.openStaging(StagingKey(.random()))
            try await withThrowingTaskGroup { group in
                for index: UInt8 in 0..<50 {
                    group.addTask {
                        let bytes = [UInt8](repeating: index, count: 1000)
                        try await area.write(SampleBytes.buffer(bytes), at: Int64(index) * 1000)
                        try await area.sync()
                    }
                }
                try await group.waitForAll()
            }
            for index: UInt8 in 0..<50 {
                let bytes = try await area.bytes(at: Int64(index) * 1000, count: 1000)
                #expect(bytes.allSatisfy { $0 == index })
            }
            await area.close()
        },
        Case(reopening: "an area is there after opening again, with what was synced") { open in
            let key = StagingKey(.random())
            let store = try await open()
            try await store.stage([1, 2, 3], as: key)
            await store.close()
            let again = try await open()
            #expect(try await again.stagingKeys() == [key])
            #expect(try await again.stagingByteCount(key) == 3)
            let area = try await again.openStaging(key)
            #expect(try await area.bytes(at: 0, count: 3) == [1, 2, 3])
            await area.close()
            await again.close()
        },
        Case("areas are listed and sized until they are removed") { store in
            let keys = (0..<20).map { _ in StagingKey(.random()) }
            for key in keys { try await store.stage([1], as: key) }
            #expect(Set(try await store.stagingKeys()) == Set(keys))
            for key in keys {
                for _ in 0..<2 { try await store.removeStaging(key) }
                #expect(try await store.stagingByteCount(key) == nil)
            }
            #expect(try await store.stagingKeys() == [])
        },
        Case("a closed area refuses to sync") { store in
            let area = try await store.openStaging(StagingKey(.random()))
            await area.close()
            await #expect(throws: ByteStoreError.self) { try await area.sync() }
        },
        Case("an area can be quarantined, and so can a second one of its name") { store in
            let key = StagingKey(.random())
            for _ in 0..<2 {
                try await store.stage([1], as: key)
                try await store.quarantine(key)
                #expect(try await store.stagingByteCount(key) == nil)
                #expect(try await store.stagingKeys() == [])
            }
            try await store.quarantine(key)
        },
    ]
}
