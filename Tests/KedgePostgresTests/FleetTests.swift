import KedgeEngine
import KedgeIdentity
import KedgeModel
import KedgePostgres
import KedgeTesting
import Testing

/// Two nodes on one database.
@Suite(.timeLimit(.minutes(2))) struct FleetTests {
    private func withTwoStores(
        _ body: (_ first: PostgresStore, _ second: PostgresStore) async throws -> Void
    ) async throws {
        let url = try await PostgresServer.shared().makeDatabase()
        let (first, second) = (try await openStore(url), try await openStore(url))
        try await body(first, second)
        try await first.close()
        try await second.close()
    }

    @Test func `two nodes that sweep at once get different garbage, and all of it`() async throws {
        try await withTwoStores { first, second in
            var keys: Set<Garbage> = []
            for _ in 0..<40 {
                let record = try await first.make()
                try await first.cancelSession(record.id, owner: record.owner)
                keys.insert(.staging(record.stagingKey))
            }
            let claims = try await withThrowingTaskGroup(of: [Garbage].self) { group in
                for number in 0..<8 {
                    let store = number.isMultiple(of: 2) ? first : second
                    group.addTask {
                        try await store.claimGarbage(
                            now: Sample.time(1), leaseUntil: Sample.time(60), limit: 5)
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(Set(claims).count == claims.count, "nothing is handed out twice")
            var rest: [Garbage] = []
            while true {
                let more = try await second.claimGarbage(
                    now: Sample.time(1), leaseUntil: Sample.time(60), limit: 5)
                if more.isEmpty { break }
                rest += more
            }
            #expect(Set(claims + rest) == keys)
            #expect(claims.count + rest.count == keys.count)
        }
    }

    @Test func `two nodes that take abandoned finalizes get different ones`() async throws {
        try await withTwoStores { first, second in
            let old = WorkLease(holder: "gone", now: Sample.time(0), until: Sample.time(10))
            for _ in 0..<20 {
                let record = try await first.make()
                _ = try await first.takeFinalize(of: record.id, expecting: nil, lease: old)
            }
            let jobs = try await withThrowingTaskGroup(of: [FinalizeJob].self) { group in
                for (holder, store) in [("a", first), ("b", second), ("c", first), ("d", second)] {
                    group.addTask {
                        try await store.takeAbandonedFinalizes(
                            lease: WorkLease(
                                holder: holder, now: Sample.time(20), until: Sample.time(80)),
                            limit: 5)
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(Set(jobs.map(\.record.id)).count == jobs.count)
        }
    }

    @Test func `deleting both files of a blob at once leaves it to the sweep`()
        async throws
    {
        try await withTwoStores { first, second in
            for round in 0..<15 {
                // Alternates between a recorded location and a name from the digest.
                let location = round.isMultiple(of: 2) ? "objects/\(round)" : nil
                let one = try await first.file("content \(round)", at: location)
                let two = try await first.file("content \(round)", at: location)
                _ = try await first.claimAll(at: 5000 + Int64(round))
                async let deletedOne: Void = first.deleteFile(
                    one.id, owner: one.owner, at: Sample.time(20))
                async let deletedTwo: Void = second.deleteFile(
                    two.id, owner: two.owner, at: Sample.time(20))
                _ = try await (deletedOne, deletedTwo)
                let garbage = try await first.claimAll(at: 7000 + Int64(100 * round))
                #expect(
                    garbage.contains(
                        location == nil
                            ? .blob(one.digest) : .staging(StagingKey(one.sessionID))),
                    "round \(round)")
            }
        }
    }

    @Test func `a file completed while the last other file of its blob is deleted keeps its bytes`()
        async throws
    {
        try await withTwoStores { first, second in
            for round in 0..<15 {
                let content = "content \(round)"
                let old = try await first.file(content, at: "objects/\(round)-old")
                let record = try await first.make()
                try await first.commitAll(record)
                _ = try await first.beginFinalize(
                    of: record.id, digest: old.digest, fileID: .random())
                async let deleted: Void = second.deleteFile(
                    old.id, owner: old.owner, at: Sample.time(20))
                async let made = first.completeFinalize(
                    of: record.id, at: Sample.time(20), location: "objects/\(round)-new",
                    keepUntil: Sample.time(80))
                let file = try await made
                try await deleted
                let kept = try await first.file(file.id, owner: file.owner)?.location
                let source = StagingKey(
                    kept == "objects/\(round)-old" ? old.sessionID : record.id)
                #expect(kept != nil)
                #expect(try await second.blobLocation(fromStaging: source) == kept)
            }
        }
    }

    @Test func `a change on one node notifies the other`() async throws {
        try await withTwoStores { first, second in
            let changeNotifications = second.changeNotifications()
            let record = try await first.make()
            // Notifications are lost until the listener is connected.
            let canceling = Task {
                while !Task.isCancelled {
                    _ = try await first.invalidateChunks([], of: record.id)
                    try await Task.sleep(for: .milliseconds(50))
                }
            }
            var heard: SessionID?
            for await id in changeNotifications {
                heard = id
                break
            }
            canceling.cancel()
            #expect(heard == record.id)
        }
    }

    @Test func `a revocation on one node notifies the other`() async throws {
        try await withTwoStores { first, second in
            let changes = second.identityChanges()
            let token = TokenRecord.sample()
            try await first.insert(token)
            // Notifications are lost until the listener is connected.
            let revoking = Task {
                while !Task.isCancelled {
                    _ = try await first.revokeToken(.random(), at: Sample.time(1))
                    _ = try await first.revokeToken(token.id, at: Sample.time(1))
                    try await Task.sleep(for: .milliseconds(50))
                }
            }
            var heard: IdentityChange?
            for await change in changes {
                heard = change
                break
            }
            revoking.cancel()
            #expect(heard == .token(token.id), "an unknown token changes nothing")
        }
    }

    @Test func `a block on one node notifies the other`() async throws {
        try await withTwoStores { first, second in
            let changes = second.identityChanges()
            let owner = try #require(OwnerID(checking: "alice"))
            // Notifications are lost until the listener is connected.
            let blocking = Task {
                while !Task.isCancelled {
                    try await first.setBlocked(true, of: owner)
                    try await Task.sleep(for: .milliseconds(50))
                }
            }
            var heard: IdentityChange?
            for await change in changes {
                heard = change
                break
            }
            blocking.cancel()
            #expect(heard == .owner(owner))
        }
    }

    @Test func `all operations of two nodes on the same sessions count`() async throws {
        try await withTwoStores { first, second in
            let records = [try await first.make(), try await first.make()]
            try await withThrowingTaskGroup { group in
                for number in 0..<60 {
                    let store = number.isMultiple(of: 2) ? first : second
                    let record = records[number % 2]
                    group.addTask {
                        switch number % 3 {
                        case 0: try await store.invalidateChunks([0], of: record.id)
                        case 1:
                            _ = try await store.commit(
                                [Sample.chunk(0)], touching: Sample.touch(record))
                        default:
                            try await store.savePartial(
                                Sample.partial(1), touching: Sample.touch(record))
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await first.now(records[0])?.revision == 30)
        }
    }
}

extension PostgresStore {
    /// Commits every chunk of a sample session.
    fileprivate func commitAll(_ record: SessionRecord) async throws {
        _ = try await commit(
            (0..<3).map { Sample.chunk($0) }, touching: Sample.touch(record))
    }

    /// A file of a new sample session.
    fileprivate func file(_ content: String, at location: String?) async throws -> FileRecord {
        let record = try await make()
        try await commitAll(record)
        _ = try await beginFinalize(
            of: record.id, digest: Sample.digest(content), fileID: .random())
        return try await completeFinalize(
            of: record.id, at: Sample.time(10), location: location,
            keepUntil: Sample.time(70))
    }

    /// Claims all garbage that a sweep at this second would remove.
    fileprivate func claimAll(at seconds: Int64) async throws -> [Garbage] {
        try await claimGarbage(
            now: Sample.time(seconds), leaseUntil: Sample.time(seconds + 1), limit: 1000)
    }
}
