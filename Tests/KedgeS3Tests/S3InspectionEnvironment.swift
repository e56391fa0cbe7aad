import KedgeEngine
import KedgeFiles
import KedgeLocks
import KedgeModel
import KedgeS3
import KedgeTesting

/// A prefix in a bucket with its rows, which a test fills and checks.
struct S3InspectionEnvironment {
    /// A server with short pages, so that every list has several.
    static let stub = Task {
        try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount, pageSize: 2)
    }

    let fixture: S3Environment
    let store: S3Store
    var rows = S3InspectionRows()

    init() async throws {
        fixture = try S3Environment(on: await Self.stub.value)
        store = try fixture.open()
    }

    /// Chunks 0, 1 and 3 of an upload of four, and 800 bytes in two pieces of chunk 2.
    func interrupted() async throws -> (SmallUpload, partial: String?) {
        var upload = SmallUpload(byteCount: 3 * SmallUpload.chunkByteCount + 5000)
        let area = try await store.openStaging(upload.key)
        for index in [0, 3, 1] { try await upload.save(index, in: area) }
        try await upload.write(0..<500, ofChunk: 2, to: area)
        let first = try await area.savePartial(upload.range(2, byteCount: 500), after: nil)
        try await upload.write(500..<800, ofChunk: 2, to: area)
        let second = try await area.savePartial(upload.range(2, byteCount: 800), after: first)
        await area.close()
        return (upload, second)
    }

    /// A session of the chunks and the partial of ``interrupted()``.
    mutating func addInterrupted() async throws -> (SmallUpload, SessionRecord) {
        let (upload, partial) = try await interrupted()
        return (upload, rows.add(upload, partial: (2, 800, partial)))
    }

    /// An upload with all its chunks.
    func saved(byteCount: Int) async throws -> SmallUpload {
        var upload = SmallUpload(byteCount: byteCount)
        try await upload.saveAll(in: store)
        return upload
    }

    /// A file with its blob.
    mutating func addFile(byteCount: Int) async throws -> (SmallUpload, FileRecord) {
        let upload = try await saved(byteCount: byteCount)
        let name = try await upload.promote(in: store)
        return (upload, rows.add(upload, at: name))
    }

    func check(scrubbing: Bool = false) async throws -> [CheckFinding] {
        let findings = Mutex<[CheckFinding]>([])
        let tally = CheckTally { finding in findings.withLock { $0.append(finding) } }
        let scrubber = ByteScrubber(
            pool: BlockingPool(threadCount: 2), bytesPerSecond: nil, bufferCapacity: 3000)
        try await StoreCheck(
            rows: rows, bytes: store.inspection, scrubber: scrubbing ? scrubber : nil, tally: tally
        ).run()
        return findings.withLock { $0 }
    }

    /// The recorded multipart upload.
    func reference(_ upload: SmallUpload) async throws -> UploadReference? {
        guard
            case .upload(let reference) = StagingState(
                try await fixture.records.stagingState(of: upload.key))
        else { return nil }
        return reference
    }
}
