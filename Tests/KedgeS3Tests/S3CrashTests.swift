import KedgeEngine
import KedgeModel
import KedgeS3
import KedgeTesting
import Testing

/// The point at which a node dies in its last request.
enum Death: CaseIterable, Sendable {
    case beforeTheRequest
    case beforeItsAnswer
}

/// A node dies at each request to its bucket, and another one continues from the rows.
struct S3CrashTests {
    @Test(.timeLimit(.minutes(2)), arguments: Death.allCases)
    func `another node completes the work of a node that dies at any request`(
        _ death: Death
    ) async throws {
        let stub = try await S3Stub.start(minPartByteCount: SmallUpload.chunkByteCount)
        for requestCount in 0... {
            var fixture = try S3Environment(on: stub)
            fixture.timeout = .milliseconds(200)
            let faultCount = try await stub.state().faultCount
            try await stub.die(after: requestCount, death)
            var life = UploadLife(fixture)
            let isDone = await life.failure(with: try fixture.open()) == nil
            try await stub.heal()
            fixture.timeout = .seconds(20)
            if !isDone, let error = await life.failure(with: try fixture.open()) {
                Issue.record(error, "request \(requestCount)")
            }
            let left = try await stub.state()
            #expect(left.objects == [], "request \(requestCount)")
            #expect(left.uploads == [], "request \(requestCount)")
            if left.faultCount > faultCount { continue }
            #expect(isDone, "nothing was in the way")
            #expect(requestCount > 10, "an upload and its removal take that many requests")
            break
        }
        await stub.stop()
    }
}

extension S3Stub {
    /// Drops all requests after so many.
    fileprivate func die(after requestCount: Int, _ death: Death) async throws {
        if death == .beforeItsAnswer {
            try await fail(.all, times: 1, after: requestCount, with: .dropDone)
        }
        try await fail(.all, after: requestCount, with: .dropUnread)
    }
}

extension S3StubState {
    fileprivate var faultCount: Int { faults.values.reduce(0, +) }
}

/// The rows of an upload of three chunks, and the work that is left for it.
private struct UploadLife {
    private let fixture: S3Environment
    private var upload = SmallUpload(byteCount: 2 * SmallUpload.chunkByteCount + 1000)
    /// Location of the partial of the middle chunk.
    private var partial: String?
    private var name: BlobName?
    private var isGarbage = false

    init(_ fixture: S3Environment) { self.fixture = fixture }

    /// - Returns: The error that ended the node; nil when it completed the work.
    mutating func failure(with store: S3Store) async -> (any Error)? {
        var failure: (any Error)?
        do { try await run(with: store) } catch { failure = error }
        // A dead node holds no descriptors.
        await store.close()
        return failure
    }

    /// Does the work that is not recorded as done.
    private mutating func run(with store: S3Store) async throws {
        if !isGarbage {
            try await bringChunks(to: store)
            let blob: BlobName
            if let name { blob = name } else { blob = try await upload.promote(in: store) }
            name = blob
            #expect(try await store.content(of: blob) == upload.content)
            // The first sweep removes everything except the blob.
            try await fixture.sweep(upload.key, in: store, keeping: blob.location)
            #expect(try await store.content(of: blob) == upload.content)
            isGarbage = true
        }
        try await fixture.sweep(upload.key, in: store)
    }

    private mutating func bringChunks(to store: S3Store) async throws {
        let area = try await store.openStaging(upload.key)
        if partial == nil {
            try await upload.write(0..<500, ofChunk: 1, to: area)
            partial = try await area.savePartial(upload.range(1, byteCount: 500), after: nil)
        }
        for index in [2, 1, 0] where !upload.chunks.contains(where: { $0.index == index }) {
            if index == 1 {
                try await upload.write(500..<SmallUpload.chunkByteCount, ofChunk: 1, to: area)
                try await upload.saveWritten(1, in: area, after: partial)
            } else {
                try await upload.save(index, in: area)
            }
        }
        await area.close()
    }
}
