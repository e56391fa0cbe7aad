import HTTPTypes
import KedgeClient
import KedgeFiles
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// Modification times that uploads store and downloads give to their files.
@Suite(.timeLimit(.minutes(1)))
struct ModificationTimeTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(200_000)
    private let nanoseconds: Int64 = 1_000_000_000_123_456_789
    private let text = "2001-09-09T01:46:40.123456789Z"
    private let isChunk: @Sendable (FakeServer.Seen) -> Bool = { $0.path.hasSuffix("/chunks/1") }

    init() throws { fixture = try TransferEnvironment() }

    /// Writes the file to upload, with a time.
    @discardableResult
    private func writeSource(_ bytes: [UInt8], at nanoseconds: Int64) throws -> String {
        let path = try fixture.write("source.bin", bytes)
        let file = try POSIXFileSystem().open(path, .readWrite)
        try file.setModificationTime(nanoseconds)
        try file.close()
        return path
    }

    private var downloadedTime: Int64? {
        get throws {
            try POSIXFileSystem().status(of: fixture.path("out.bin"))?.modifiedNanoseconds
        }
    }

    private var completedMetadata: [[String: String]] {
        fixture.sessions.filter { $0.state == .completed }.map(\.metadata)
    }

    @Test(arguments: [false, true])
    func `an upload stores the time of its file only if that is wanted`(keeps: Bool) async throws {
        let path = try writeSource(bytes, at: nanoseconds)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(
            path: path, options: UploadOptions(keepsModificationTime: keeps))
        fixture.expectUploaded(try await client.run(id), bytes)
        #expect(completedMetadata == [keeps ? ["mtime": text] : [:]])
    }

    @Test func `a time in the metadata takes precedence over that of the file`() async throws {
        let path = try writeSource(bytes, at: nanoseconds)
        let client = try await fixture.client()
        let options = UploadOptions(metadata: ["mtime": "other"], keepsModificationTime: true)
        _ = try await client.run(try await client.enqueueUpload(path: path, options: options))
        #expect(completedMetadata == [["mtime": "other"]])
    }

    @Test func `an upload that another process runs stores the time`() async throws {
        let path = try writeSource(bytes, at: nanoseconds)
        let first = try await fixture.client()
        let id = try await first.enqueueUpload(
            path: path, options: UploadOptions(keepsModificationTime: true))
        try await first.close()
        let second = try await fixture.client()
        fixture.expectUploaded(try await second.run(id), bytes)
        #expect(completedMetadata == [["mtime": text]])
    }

    @Test func `the upload of a changed file stores its new time`() async throws {
        let path = try writeSource(bytes, at: nanoseconds)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(
            path: path, options: UploadOptions(keepsModificationTime: true))
        let content = Array(bytes.dropLast(1))
        try writeSource(content, at: nanoseconds + 1)
        fixture.expectUploaded(try await client.run(id), content)
        #expect(completedMetadata == [["mtime": "2001-09-09T01:46:40.123456790Z"]])
    }

    @Test(arguments: [false, true])
    func `a repeated upload stores the time that it asks for`(hasBegun: Bool) async throws {
        let path = try writeSource(bytes, at: nanoseconds)
        let client = try await fixture.client()
        let id = try await client.enqueueUpload(path: path)
        if hasBegun {
            fixture.plan(.answer(Reply(problem: .badRequest)), when: isChunk)
            #expect(try await client.run(id).state == .failed)
        }
        let again = try await client.enqueueUpload(
            path: path, options: UploadOptions(keepsModificationTime: true))
        #expect(again == id)
        fixture.expectUploaded(try await client.run(id), bytes)
        #expect(completedMetadata == [["mtime": text]])
    }

    @Test func `a finished upload without the time is not the one that is wanted`() async throws {
        let path = try writeSource(bytes, at: nanoseconds)
        let client = try await fixture.client()
        let wanted = UploadOptions(keepsModificationTime: true)
        _ = try await client.run(try await client.enqueueUpload(path: path))
        #expect(try await client.finishedUpload(path: path, options: wanted) == nil)
        let id = try await client.enqueueUpload(path: path, options: wanted)
        _ = try await client.run(id)
        #expect(try await client.finishedUpload(path: path, options: wanted)?.id == id)
        #expect(try await client.finishedUpload(path: path)?.id == id)
    }

    @Test func `a tus upload sends the time, and an IETF upload refuses it`() async throws {
        let tus = try SequentialUploadEnvironment(.tus)
        try tus.base.write("source.bin", bytes)
        let client = try await tus.client()
        let path = tus.base.path("source.bin")
        let id = try await client.enqueueUpload(
            path: path, options: UploadOptions(uploadProtocol: .tus, keepsModificationTime: true))
        tus.expectUploaded(try await client.run(id), bytes)
        let sent = tus.seen("POST").first?.fields[.named("Upload-Metadata")]
        #expect(sent?.contains(",mtime ") == true)
        await #expect(throws: TransferError(.usage, operation: "")) {
            try await client.enqueueUpload(
                path: path,
                options: UploadOptions(
                    uploadProtocol: .resumableUpload, keepsModificationTime: true))
        }
    }

    private func addFile(mtime: String?) -> RemoteReference {
        let id = fixture.addFile(bytes)
        fixture.server.state.withLock { $0.files[id]?.mtime = mtime }
        return .file(id)
    }

    private func download(
        _ reference: RemoteReference, _ client: TransferClient
    ) async throws -> TransferSnapshot {
        let id = try await client.enqueueDownload(
            reference, to: fixture.path("out.bin"),
            options: DownloadOptions(keepsModificationTime: true))
        return try await client.run(id)
    }

    @Test func `a download gets the time that was stored with the file`() async throws {
        let snapshot = try await download(addFile(mtime: text), try await fixture.client())
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        #expect(try downloadedTime == nanoseconds)
        let isWhole = fixture.read("out.bin") == bytes
        #expect(isWhole)
    }

    @Test(arguments: [nil, "", "yesterday", "9999-12-31T23:59:59Z"] as [String?])
    func `a download without a usable time has its own`(mtime: String?) async throws {
        let began = Timestamp.current.millisecondsSinceEpoch
        let snapshot = try await download(addFile(mtime: mtime), try await fixture.client())
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        // File systems have coarser clocks.
        #expect(try #require(try downloadedTime) / 1_000_000 > began - 60_000)
    }

    @Test func `a download has its own time unless another one is wanted`() async throws {
        let began = Timestamp.current.millisecondsSinceEpoch
        let client = try await fixture.client()
        let id = try await client.enqueueDownload(
            addFile(mtime: text), to: fixture.path("out.bin"))
        #expect(try await client.run(id).state == .completed)
        #expect(try #require(try downloadedTime) / 1_000_000 > began - 60_000)
    }

    @Test(arguments: [true, false])
    func `a download from another server gets the time of Last-Modified`(
        servesRanges: Bool
    ) async throws {
        let plain = FakeServer.Plain(
            bytes: bytes, etag: "\"v1\"", lastModified: "Sun, 06 Nov 1994 08:49:37 GMT",
            servesRanges: servesRanges)
        fixture.server.state.withLock { $0.plain["x"] = plain }
        let snapshot = try await download(
            .url(FakeServer.base + "/plain/x"), try await fixture.client())
        #expect(snapshot.state == .completed, "\(snapshot.message)")
        #expect(try downloadedTime == 784_111_777_000_000_000)
    }

    @Test func `a download that another process goes on with gets the time`() async throws {
        let gate = Gate()
        fixture.plan(.wait(gate)) { $0.fields[.range] != nil }
        let first = try await fixture.client()
        let id = try await first.enqueueDownload(
            addFile(mtime: text), to: fixture.path("out.bin"),
            options: DownloadOptions(keepsModificationTime: true))
        let run = Task { try await first.run(id) }
        await gate.waitForArrival()
        run.cancel()
        _ = try await run.value
        gate.open()
        try await first.close()
        let second = try await fixture.client()
        #expect(try await second.run(id).state == .completed)
        #expect(try downloadedTime == nanoseconds)
    }

    @Test func `a repeated download gets the time that it asks for`() async throws {
        let client = try await fixture.client()
        let reference = addFile(mtime: text)
        let id = try await client.enqueueDownload(reference, to: fixture.path("out.bin"))
        let snapshot = try await download(reference, client)
        #expect(snapshot.id == id)
        #expect(snapshot.state == .completed)
        #expect(try downloadedTime == nanoseconds)
    }
}
