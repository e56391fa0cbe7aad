internal import KedgeEngine
internal import KedgeModel
internal import Testing

extension MetadataStoreConformance {
    static let concurrency = [
        Case(reopening: "two hundred commits at once are all there after opening again") { open in
            let store = try await open()
            let record = try await store.make(Sample.session(fileSize: 200 * Sample.chunkSize))
            let chunks = (0..<200).map {
                CommittedChunk(
                    index: $0, byteCount: Sample.chunkSize, digest: Sample.digest("\($0)"))
            }
            try await withThrowingTaskGroup { group in
                for chunk in chunks {
                    group.addTask {
                        let outcome = try await store.commit(
                            [chunk], touching: Sample.touch(record))
                        #expect(outcome == [.committed])
                    }
                }
                try await group.waitForAll()
            }
            try await store.close()
            let again = try await open()
            #expect(try await again.now(record)?.chunks == chunks)
            try await again.close()
        },
        Case("an operation that fails does not fail the operations beside it") { store in
            let record = try await store.make(Sample.session(fileSize: 100 * Sample.chunkSize))
            let failures = await withTaskGroup(of: Bool.self) { group in
                for index in 0..<100 {
                    // Every third chunk has a length that the session cannot have.
                    let chunk = CommittedChunk(
                        index: index, byteCount: index % 3 == 0 ? 1 : Sample.chunkSize,
                        digest: Sample.digest("\(index)"))
                    group.addTask {
                        do {
                            _ = try await store.commit([chunk], touching: Sample.touch(record))
                            return index % 3 == 0
                        } catch {
                            return index % 3 != 0
                        }
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(failures == 0)
            #expect(try await store.now(record)?.chunks.count == 66)
        },
        Case("the first of many concurrent digests for one chunk wins") { store in
            let record = try await store.make()
            let outcomes = try await withThrowingTaskGroup(of: ChunkOutcome.self) { group in
                for number in 0..<30 {
                    group.addTask {
                        let chunk = Sample.chunk(0, "writer \(number)")
                        return try await store.commit([chunk], touching: Sample.touch(record))[0]
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            let stored = try #require(try await store.now(record)?.chunks.first?.digest)
            #expect(outcomes.filter { $0 == .committed }.count == 1)
            #expect(outcomes.filter { $0 == .conflict(stored: stored) }.count == 29)
        },
        Case("an operation of a cancelled task is done and reported all the same") { store in
            let record = try await store.make()
            let task = Task {
                // Waits until the cancellation below has come.
                while !Task.isCancelled { await Task.yield() }
                return try await store.commit([Sample.chunk(0)], touching: Sample.touch(record))
            }
            task.cancel()
            #expect(try await task.value == [.committed])
            #expect(try await store.now(record)?.chunks == [Sample.chunk(0)])
        },
        Case(reopening: "every row is there after opening again") { open in
            let store = try await open()
            let file = try await store.makeFile()
            let key = IdempotencyKey(key: "key", fingerprint: "request")
            let record = Sample.session()
            _ = try await store.createSession(record, idempotencyKey: key, adopting: nil)
            _ = try await store.commit(
                [Sample.chunk(0)], touching: Sample.touch(record, prefix: 100))
            try await store.savePartial(Sample.partial(1), touching: Sample.touch(record))
            let canceled = try await store.make()
            try await store.cancelSession(canceled.id, owner: canceled.owner)
            try await store.close()

            let again = try await open()
            #expect(try await again.file(file.id, owner: file.owner) == file)
            let progress = try #require(try await again.now(record))
            #expect(progress.chunks == [Sample.chunk(0)])
            #expect(progress.partials == [Sample.partial(1)])
            #expect(progress.record.prefix?.offset == 100)
            let outcome = try await again.createSession(
                Sample.session(), idempotencyKey: key, adopting: nil)
            guard case .replayed(progress.record) = outcome else {
                Issue.record("expected a replay")
                return
            }
            #expect(try await again.claimAll() == [.staging(canceled.stagingKey)])
            try await again.close()
        },
        Case("a working store passes its health check") { store in try await store.checkHealth() },
    ]
}
