import KedgeEngine
import KedgeS3
import KedgeTesting
import Testing

/// Faults of a store, for each operation and each kind of fault.
///
/// Serialized, because the tests of one function share a stub: a fault would meet the requests of
/// another test, too.
@Suite(.serialized) struct S3FaultTests {
    struct Fault: CustomTestStringConvertible {
        let testDescription: String
        let action: S3Fault.Action

        static let all = [
            Fault(testDescription: "503 SlowDown", action: .status(503, "SlowDown")),
            Fault(testDescription: "500 InternalError", action: .status(500, "InternalError")),
            Fault(testDescription: "400 RequestTimeout", action: .status(400, "RequestTimeout")),
            Fault(testDescription: "dropped unread", action: .dropUnread),
            Fault(testDescription: "dropped undone", action: .dropUndone),
            Fault(testDescription: "answer lost", action: .dropDone),
            Fault(testDescription: "clock ahead", action: .skewedClock(ahead: .seconds(3600))),
        ]
    }

    static let operations: [S3Operation] = [
        .putObject, .getObject, .headObject, .deleteObject, .listObjects, .createMultipartUpload,
        .uploadPart, .completeMultipartUpload, .abortMultipartUpload, .listParts,
        .listMultipartUploads,
    ]

    /// An answer to HEAD has no body for this error code.
    static let cases = operations.flatMap { operation in
        Fault.all.map { (operation, $0) }
    }.filter { $0.0 != .headObject || $0.1.testDescription != "400 RequestTimeout" }

    @Test(.timeLimit(.minutes(1)), arguments: cases)
    func `an upload completes although the store fails transiently`(
        _ operation: S3Operation, _ fault: Fault
    ) async throws {
        let stub = try await SharedServers.failing.value
        let fixture = try S3Environment(on: stub)
        let faultCount = try await stub.state().faults.values.reduce(0, +)
        try await stub.fail(operation, times: 2, with: fault.action)
        let (store, other) = (try fixture.open(), try fixture.open())
        var upload = SmallUpload(byteCount: SmallUpload.chunkByteCount + 1000)
        let (area, next) = (
            try await store.openStaging(upload.key), try await other.openStaging(upload.key)
        )
        try await upload.write(0..<500, ofChunk: 1, to: area)
        let partial = try await area.savePartial(upload.range(1, byteCount: 500), after: nil)
        try await upload.save(0, in: area)
        try await upload.write(500..<1000, ofChunk: 1, to: next)
        try await upload.saveWritten(1, in: next, after: partial)
        await area.close()
        await next.close()
        let name = try await upload.promote(in: other)
        #expect(try await other.content(of: name) == upload.content)
        let state = try await fixture.records.stagingState(of: upload.key)
        try await store.removeStaging(upload.key, state: state, keeping: nil)
        // An abandoned staging area has a multipart upload to abort.
        var second = SmallUpload(byteCount: SmallUpload.chunkByteCount + 1000)
        let third = try await store.openStaging(second.key)
        try await second.save(0, in: third)
        await third.close()
        try await fixture.sweep(second.key, in: store)
        let left = try await stub.state()
        #expect(left.objects.filter { $0.key.hasPrefix(fixture.prefix) } == [])
        #expect(left.uploads.filter { $0.key.hasPrefix(fixture.prefix) } == [])
        #expect(left.faults.values.reduce(0, +) > faultCount, "the fault was met")
        try await stub.heal()
        await store.close()
        await other.close()
    }

    @Test(.timeLimit(.minutes(1)), arguments: ["InternalError", "SlowDown"])
    func `an error in the body of a completion's 200 is retried`(_ code: String) async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open()
        var upload = SmallUpload(byteCount: SmallUpload.chunkByteCount + 1)
        try await upload.saveAll(in: store)
        try await stub.fail(.completeMultipartUpload, times: 2, with: .errorInOK(code))
        let name = try await upload.promote(in: store)
        #expect(try await stub.state().count(.completeMultipartUpload) == 3)
        #expect(try await store.content(of: name) == upload.content)
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a download completes although its connection is lost`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open()
        var upload = SmallUpload(byteCount: SmallUpload.chunkByteCount)
        try await upload.saveAll(in: store)
        let name = try await upload.promote(in: store)
        try await stub.fail(.getObject, times: 3, with: .cut(afterByteCount: 3000))
        #expect(try await store.content(of: name) == upload.content)
        #expect(try await stub.state().faults.values.reduce(0, +) == 3)
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `bytes that arrive damaged are sent again`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open()
        var upload = SmallUpload(byteCount: 1000)
        try await stub.fail(.putObject, times: 1, with: .wrongChecksum)
        try await upload.saveAll(in: store)
        #expect(try await stub.state().count(.putObject) == 2)
        try await stub.fail(.putObject, with: .wrongChecksum)
        let again = upload
        await #expect(throws: ByteStoreError.self) {
            var again = again
            try await again.saveAll(in: store)
        }
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)), arguments: [(501, "NotImplemented"), (400, "InvalidArgument")])
    func `a store without checksum support is asked once`(
        _ status: Int, _ code: String
    ) async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open()
        try await stub.fail(
            .createMultipartUpload, times: 1, with: .status(status, code))
        var upload = SmallUpload(byteCount: SmallUpload.chunkByteCount + 1)
        try await upload.saveAll(in: store)
        #expect(
            try await fixture.records.stagingState(of: upload.key)?.hasPrefix("upload:") == true)
        let name = try await upload.promote(in: store)
        #expect(try await store.content(of: name) == upload.content)
        var second = SmallUpload(byteCount: SmallUpload.chunkByteCount + 1)
        try await second.saveAll(in: store)
        #expect(try await stub.state().count(.createMultipartUpload) == 3)
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `chunks of a lost multipart upload are not found, and can be sent again`()
        async throws
    {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open()
        var upload = SmallUpload(byteCount: 2 * SmallUpload.chunkByteCount)
        let area = try await store.openStaging(upload.key)
        try await upload.save(0, in: area)
        let id = try #require(try await stub.state().uploads.first?.uploadID)
        try await store.client.abortUpload(of: store.keys.assembled(upload.key), id)
        let before = upload
        await #expect(throws: ByteStoreError.notFound) {
            var before = before
            try await before.save(1, in: area)
        }
        // The record stays until the rows of the chunks are invalidated, which also removes it.
        let state = try #require(try await fixture.records.stagingState(of: upload.key))
        _ = try await fixture.records.setStagingState(nil, of: upload.key, replacing: state)
        upload.chunks = []
        try await upload.save(1, in: area)
        try await upload.save(0, in: area)
        let name = try await upload.promote(in: store)
        #expect(try await store.content(of: name) == upload.content)
        await area.close()
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a permanent refusal is not retried, and its error contains no secret`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        let fixture = try S3Environment(on: stub)
        let store = try fixture.open()
        try await stub.fail(.putObject, with: .status(403, "AccessDenied"))
        let upload = SmallUpload(byteCount: 10)
        let error = await #expect(throws: ByteStoreError.self) {
            var upload = upload
            try await upload.saveAll(in: store)
        }
        guard case .unavailable(let text) = error else {
            Issue.record("another error: \(String(describing: error))")
            return
        }
        #expect(!text.contains(stub.secretKey))
        #expect(try await stub.state().count(.putObject) == 1)
        await store.close()
        await stub.stop()
    }

    @Test(.timeLimit(.minutes(1)))
    func `a store is unavailable after the timeout, and usable once it is back`() async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        var fixture = try S3Environment(on: stub)
        fixture.timeout = .milliseconds(300)
        let store = try fixture.open()
        try await store.checkHealth()
        try await stub.fail(.putObject, with: .status(503, "SlowDown"))
        // The store does not repeat a health check that just succeeded.
        try await store.checkHealth()
        let upload = SmallUpload(byteCount: 10)
        let error = await #expect(throws: ByteStoreError.self) {
            var upload = upload
            try await upload.saveAll(in: store)
        }
        guard case .unavailable = error else {
            Issue.record("another error: \(String(describing: error))")
            return
        }
        try await stub.heal()
        var second = upload
        try await second.saveAll(in: store)
        await store.close()
        await stub.stop()
    }
}
