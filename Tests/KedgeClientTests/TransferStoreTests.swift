import Foundation
import GRDB
import KedgeClient
import KedgeFiles
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1)))
struct TransferStoreTests {
    private let fixture: TransferEnvironment

    init() throws { fixture = try TransferEnvironment() }

    private final class Clock: Sendable {
        let time = Mutex(Timestamp(millisecondsSinceEpoch: 1_000_000))
        func advance(_ duration: Duration) {
            time.withLock { $0 = $0.advanced(by: duration) }
        }
    }

    private func open(_ clock: Clock = Clock()) async throws -> TransferStore {
        var environment = fixture.environment
        environment.files = POSIXFileSystem()
        environment.now = { clock.time.withLock { $0 } }
        return try await TransferStore.open(
            path: fixture.path("state/transfers.sqlite"), environment: environment)
    }

    private func makeUpload(_ path: String = "/a/b") -> UploadTransfer {
        UploadTransfer(
            status: TransferStatus(
                id: .random(), serverURL: "http://s",
                createdAt: Timestamp(millisecondsSinceEpoch: 1_000_000)),
            path: path, fileName: "b",
            identity: SourceIdentity(
                byteCount: 5 << 30, modifiedNanoseconds: 17, inode: .max),
            mimeType: "text/plain", chunkSize: 4 << 20, idempotencyKey: "key")
    }

    private func makeDownload(_ destination: String = "/d/file") -> DownloadTransfer {
        let id = TransferID.random()
        return DownloadTransfer(
            status: TransferStatus(
                id: id, serverURL: "http://s",
                createdAt: Timestamp(millisecondsSinceEpoch: 1_000_000)),
            reference: .url("https://example.org/x?y"), destinationPath: destination,
            tempPath: TempFile.path(for: destination, id: id), overwrites: true,
            pinnedHash: SHA256Digest(bytes: (0..<32).map { UInt8($0) }), chunkSize: 1 << 20)
    }

    private func acquired(
        _ store: TransferStore, _ id: TransferID, _ owner: LeaseOwner
    ) async throws -> Lease {
        let outcome = try await store.acquireLease(id, for: owner)
        guard case .acquired(let lease) = outcome else {
            throw TransferError(.illegalTransition, operation: "test")
        }
        return lease
    }

    // R24–R29, R37–R42.
    @Test func `records come back as they were stored`() async throws {
        let (upload, download) = (makeUpload(), makeDownload())
        let store = try await open()
        _ = try await store.findOrInsert(upload)
        _ = try await store.findOrInsert(download)
        try await store.close()
        let reopened = try await open()
        #expect(try await reopened.upload(upload.status.id) == upload)
        #expect(try await reopened.download(download.status.id) == download)
        #expect(upload.layout.chunkCount == 1280)
    }

    // R131.
    @Test func `the records are private to their user`() async throws {
        let store = try await open()
        let attributes = try FileManager.default.attributesOfItem(
            atPath: fixture.path("state/transfers.sqlite"))
        let directory = try FileManager.default.attributesOfItem(atPath: fixture.path("state"))
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(directory[.posixPermissions] as? Int == 0o700)
        try await store.close()
    }

    @Test func `the same file and server is the same transfer until it ends`() async throws {
        let store = try await open()
        let first = try await store.findOrInsert(makeUpload())
        #expect(try await store.findOrInsert(makeUpload()) == first)
        _ = try await store.request(.cancel, of: first.status.id)
        let second = try await store.findOrInsert(makeUpload())
        #expect(second.status.id != first.status.id)
        await #expect(throws: TransferError(.illegalTransition, operation: "")) {
            _ = try await store.request(.retry, of: first.status.id)
        }
    }

    // R30, R77, R127.
    @Test(arguments: (0..<5).map { _ in UInt64.random(in: 0...(.max)) })
    func `confirmed chunks survive a restart whatever their order`(seed: UInt64) async throws {
        var generator = SplitMix64(seed: seed)
        let order = (0..<60).shuffled(using: &generator)
        let store = try await open()
        let upload = try await store.findOrInsert(makeUpload())
        let lease = try await acquired(store, upload.status.id, try await store.makeOwner())
        try await store.start(lease)
        try await store.attachSession(
            CreateSessionResponse(
                sessionId: .random(), expiresAt: Timestamp(millisecondsSinceEpoch: 5),
                state: .open, fileSize: 5 << 30, chunkSize: 4 << 20, totalChunks: 1280,
                receivedBytes: 0,
                limits: SessionLimits(
                    minChunkSize: 1, maxChunkSize: 1, maxFileSize: 1, maxConcurrentChunks: 3),
                requiredHeaders: []),
            answer: ServerAnswer(status: 201, requestID: "r1"), to: lease)
        for index in order {
            try await store.confirmChunk(
                index, endOffset: Int64(index + 1) * 100,
                digest: SHA256Hasher.digest(of: [UInt8(index)]),
                hash: SavedHash(offsetBytes: 64, state: [1, 2]), attempts: index % 3 + 1,
                answer: ServerAnswer(status: 200, requestID: nil), of: lease)
        }
        try await store.close()
        let reopened = try await open()
        let stored = try await reopened.upload(upload.status.id)
        #expect(stored.uploadedChunks == ChunkSet(0..<60), "seed \(seed)")
        #expect(stored.status.lastGoodByteOffset == 6000)
        #expect(stored.status.lastServerStatus == 200)
        #expect(stored.savedHash == SavedHash(offsetBytes: 64, state: [1, 2]))
        #expect(stored.maxConcurrentChunks == 3)
        // R139.
        #expect(try await reopened.attempts(upload.status.id)[2] == 3)
        #expect(try await reopened.attemptCount(upload.status.id) == 120)
    }

    @Test func `two owners never run one transfer`() async throws {
        let (store, other) = (try await open(), try await open())
        let upload = try await store.findOrInsert(makeUpload())
        let (mine, yours) = (try await store.makeOwner(), try await other.makeOwner())
        let lease = try await acquired(store, upload.status.id, mine)
        let outcome = try await other.acquireLease(upload.status.id, for: yours)
        guard case .held = outcome else {
            Issue.record("the second owner got \(outcome)")
            return
        }
        try await store.start(lease)
        try await store.releaseLease(lease)
        _ = try await acquired(other, upload.status.id, yours)
        await #expect {
            try await store.heartbeat(lease)
        } throws: { error in
            error.isLeaseLost
        }
        await #expect {
            try await store.fail(lease, code: .offline, message: "", answer: nil)
        } throws: { error in
            error.isLeaseLost
        }
    }

    // R1, R134: kill -9 leaves a lease behind.
    @Test func `the lease of an owner that is gone is taken over at once`() async throws {
        let store = try await open()
        let upload = try await store.findOrInsert(makeUpload())
        var dead: LeaseOwner? = try await store.makeOwner()
        if let owner = dead {
            let lease = try await acquired(store, upload.status.id, owner)
            try await store.start(lease)
        }
        #expect(try await store.upload(upload.status.id).status.state == .uploading)
        dead = nil
        _ = try await acquired(store, upload.status.id, try await store.makeOwner())
        #expect(try await store.upload(upload.status.id).status.state == .queued)
    }

    @Test func `an owner that is silent for long loses its lease and gets an error`() async throws {
        let clock = Clock()
        let store = try await open(clock)
        let upload = try await store.findOrInsert(makeUpload())
        let (silent, other) = (try await store.makeOwner(), try await store.makeOwner())
        let lease = try await acquired(store, upload.status.id, silent)
        clock.advance(.seconds(4))
        try await store.heartbeat(lease)
        clock.advance(.seconds(4))
        guard case .held = try await store.acquireLease(upload.status.id, for: other) else {
            Issue.record("a lease with a fresh heartbeat was taken")
            return
        }
        clock.advance(.seconds(2))
        _ = try await acquired(store, upload.status.id, other)
        await #expect {
            _ = try await store.command(lease)
        } throws: { error in
            error.isLeaseLost
        }
    }

    // R36.
    @Test func `the times of a record never go back, whatever the clock does`() async throws {
        let clock = Clock()
        let store = try await open(clock)
        let owner = try await store.makeOwner()
        let made = try await store.findOrInsert(makeUpload()).status
        let lease = try await acquired(store, made.id, owner)
        var updates = [made.createdAt]
        for step in [10, -3600, 1, -7200, 20_000] {
            clock.advance(.seconds(step))
            try await store.recordAttempt(
                lease, chunk: 0, code: .offline, message: "-", answer: nil)
            let status = try await store.record(made.id).status
            #expect(status.createdAt == made.createdAt)
            updates.append(status.updatedAt)
        }
        #expect(updates == updates.sorted())
        #expect(Set(updates).count == 3)
        owner.release()
    }

    @Test func `owners leave no files behind`() async throws {
        let store = try await open()
        var owner: LeaseOwner? = try await store.makeOwner()
        let directory = fixture.path("state/owners")
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [owner?.token])
        owner = nil
        // The thread that made it may hold it for a moment longer.
        let isEmpty = try await eventually {
            try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty
        }
        #expect(isEmpty)
        // The next owner removes the file that a killed process left.
        let rest = directory + "/" + TransferID.random().text
        try Data().write(to: URL(fileURLWithPath: rest))
        owner = try await store.makeOwner()
        #expect(!FileManager.default.fileExists(atPath: rest))
    }

    // R109.
    @Test func `a command reaches the owner and is checked by the state machine`() async throws {
        let store = try await open()
        let upload = try await store.findOrInsert(makeUpload())
        let owner = try await store.makeOwner()
        let lease = try await acquired(store, upload.status.id, owner)
        try await store.start(lease)
        #expect(try await store.request(.pause, of: upload.status.id) == nil)
        #expect(try await store.command(lease) == .pause)
        try await store.pause(lease, reason: .user)
        let paused = try await store.upload(upload.status.id).status
        #expect(paused.state == .paused)
        #expect(paused.pauseReason == .user)
        #expect(paused.command == nil)
        _ = try await store.request(.resume, of: upload.status.id)
        _ = try await store.request(.cancel, of: upload.status.id)
        await #expect(throws: TransferError(.illegalTransition, operation: "")) {
            _ = try await store.request(.pause, of: upload.status.id)
        }
    }

    @Test func `the records of a newer kedge are refused`() async throws {
        let store = try await open()
        try await store.transaction("test") { database in
            try database.execute(
                sql: """
                    INSERT INTO schema_migration (number, name, sha256, applied_at)
                    VALUES (99, 'future', '\(String(repeating: "0", count: 64))', 0)
                    """)
        }
        try await store.close()
        await #expect(throws: TransferError(.storeDamaged, operation: "")) {
            _ = try await open()
        }
    }

    @Test func `the schema refuses illegal rows`() async throws {
        let store = try await open()
        let upload = try await store.findOrInsert(makeUpload())
        let impossible = [
            "UPDATE upload_transfer SET state = 'completed'",
            "UPDATE upload_transfer SET state = 'paused'",
            "UPDATE upload_transfer SET state = 'failed'",
            "UPDATE upload_transfer SET state = 'downloading'",
            "UPDATE upload_transfer SET uploaded_chunks = x'01'",
            "UPDATE upload_transfer SET hash_offset = 5",
            "UPDATE upload_transfer SET owner_token = 'x'",
            "UPDATE upload_transfer SET chunk_size = 0",
        ]
        for sql in impossible {
            await #expect(throws: TransferError(.storeDamaged, operation: ""), "\(sql)") {
                try await store.transaction("test") { try $0.execute(sql: sql) }
            }
        }
        #expect(try await store.upload(upload.status.id) == upload)
    }
}
