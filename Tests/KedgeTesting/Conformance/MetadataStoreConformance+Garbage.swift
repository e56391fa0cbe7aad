internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    static let garbage = [
        Case("a blob is swept with the last of its files") { store in
            let first = try await store.makeFile("same")
            let second = try await store.makeFile("same", owner: Sample.stranger)
            try await store.deleteFile(first.id, owner: first.owner, at: Sample.time(20))
            #expect(try await store.isNeeded(first.digest))
            #expect(try await store.claimAll() == [])
            try await store.deleteFile(second.id, owner: second.owner, at: Sample.time(21))
            #expect(try await !store.isNeeded(first.digest))
            #expect(try await store.claimAll() == [.blob(first.digest)])
        },
        Case("a blob that a finalizing session needs is not swept") { store in
            let file = try await store.makeFile("same")
            let record = try await store.make()
            try await store.fill(record)
            _ = try await store.beginFinalize(of: record.id, digest: file.digest, fileID: .random())
            try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(20))
            #expect(try await store.isNeeded(file.digest))
            #expect(try await store.claimAll() == [])
            let second = try await store.completeFinalize(of: record.id, at: Sample.time(30))
            #expect(try await store.claimAll() == [])
            try await store.deleteFile(second.id, owner: second.owner, at: Sample.time(40))
            #expect(try await store.claimAll() == [.blob(file.digest)])
        },
        Case("a blob that is needed again is dropped from the garbage") { store in
            let file = try await store.makeFile("same")
            try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(20))
            let record = try await store.make()
            try await store.fill(record)
            _ = try await store.beginFinalize(of: record.id, digest: file.digest, fileID: .random())
            #expect(try await store.claimAll() == [])
            try await store.cancelSession(record.id, owner: record.owner)
            #expect(
                try await store.claimAll() == [.blob(file.digest), .staging(record.stagingKey)])
        },
        Case("claimed garbage is not claimed again until its lease ends") { store in
            let record = try await store.make()
            try await store.cancelSession(record.id, owner: record.owner)
            func claim(_ now: Int64) async throws -> [Garbage] {
                try await store.claimGarbage(
                    now: Sample.time(now), leaseUntil: Sample.time(now + 60), limit: 10)
            }
            #expect(try await claim(100) == [.staging(record.stagingKey)])
            #expect(try await claim(101) == [])
            #expect(try await claim(159) == [])
            #expect(try await claim(161) == [.staging(record.stagingKey)])
        },
        Case("forgotten garbage is not claimed again") { store in
            let record = try await store.make()
            try await store.cancelSession(record.id, owner: record.owner)
            _ = try await store.claimAll()
            for _ in 0..<2 { try await store.forget(.staging(record.stagingKey)) }
            #expect(try await store.claimAll(at: 6000) == [])
        },
        Case("garbage that came back while it was removed stays") { store in
            let file = try await store.makeFile("same")
            try await store.deleteFile(file.id, owner: file.owner, at: Sample.time(20))
            #expect(try await store.claimAll() == [.blob(file.digest)])
            let again = try await store.makeFile("same")
            try await store.deleteFile(again.id, owner: again.owner, at: Sample.time(30))
            try await store.forget(.blob(file.digest))
            #expect(try await store.claimAll(at: 6000) == [.blob(file.digest)])
        },
        Case("one claim takes no more than its limit") { store in
            for _ in 0..<5 {
                let record = try await store.make()
                try await store.cancelSession(record.id, owner: record.owner)
            }
            let first = try await store.claimGarbage(
                now: Sample.time(1), leaseUntil: Sample.time(60), limit: 3)
            let second = try await store.claimGarbage(
                now: Sample.time(1), leaseUntil: Sample.time(60), limit: 3)
            #expect(first.count == 3)
            #expect(second.count == 2)
            #expect(Set(first).isDisjoint(with: second))
        },
        Case("staged bytes are known while a session or the garbage names them") { store in
            let record = try await store.make()
            #expect(try await store.isKnown(record.stagingKey))
            #expect(try await !store.isKnown(StagingKey(.random())))
            try await store.cancelSession(record.id, owner: record.owner)
            #expect(try await store.isKnown(record.stagingKey))
            _ = try await store.claimAll()
            try await store.forget(.staging(record.stagingKey))
            #expect(try await !store.isKnown(record.stagingKey))
        },
    ]
}
