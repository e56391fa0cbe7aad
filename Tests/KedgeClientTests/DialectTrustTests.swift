import HTTPTypes
import KedgeHash
import KedgeLocks
import KedgeModel
import Testing

@testable import KedgeClient

/// When an upload counts as done, and when not: by the server's last word, and for the bytes that were sent.
@Suite(.timeLimit(.minutes(2)))
struct DialectTrustTests {
    private let bytes = Scene.bytes(600_000)

    /// The server says that it has half, so often as it is asked, and then knows nothing of the upload.
    private func loseHalf(_ scene: DialectScene, count: Int) {
        scene.plan(
            .rewrite { reply in
                reply.fields[.uploadOffset] = "300000"
                if scene.dialect == .resumableUpload {
                    reply.fields[.named("Upload-Complete")] = "?0"
                }
            }, count: count
        ) { $0.method == "HEAD" && $0.path.hasSuffix("/1") }
        scene.plan(.answer(Reply(status: 404)), count: 1000) { seen in
            seen.path.hasSuffix("/1")
                && (seen.method == "HEAD" || seen.fields[.uploadOffset] == "300000")
        }
    }

    @Test(arguments: DialectScene.dialects, [1, 2])
    func `a server that lost what it had acknowledged does not have the file`(
        dialect: UploadDialect, count: Int
    ) async throws {
        let scene = try DialectScene(dialect)
        loseHalf(scene, count: count)
        scene.expectUploaded(try await scene.upload(bytes), bytes)
        #expect(scene.seen("POST").count == 2)
    }

    @Test(arguments: DialectScene.dialects)
    func `nor does it after a kill, whatever the record says`(dialect: UploadDialect) async throws {
        let scene = try DialectScene(dialect)
        try scene.scene.write("source.bin", bytes)
        let (id, stopped) = try await scene.stopUpload(at: "HEAD")
        #expect(stopped.bytesTransferred == 600_000)
        loseHalf(scene, count: 1)
        scene.expectUploaded(try await scene.client().run(id), bytes)
        #expect(scene.seen("POST").count == 2)
    }

    // R79, R119.
    @Test(arguments: DialectScene.dialects)
    func `what had another digest twice is not taken for the file later`(
        dialect: UploadDialect
    ) async throws {
        let scene = try DialectScene(dialect)
        scene.set { $0.digest = SHA256Hasher.digest(of: [1]) }
        let failed = try await scene.upload(bytes)
        #expect(failed.errorCode == .integrityMismatch)
        #expect(failed.uploadURL == nil)
        #expect(scene.uploads.isEmpty)
        scene.set { state in
            state.digest = nil
            state.uploads = [:]
        }
        let client = try await scene.client()
        let snapshot = try await client.run(try await scene.enqueue(client))
        scene.expectUploaded(snapshot, bytes)
        #expect(snapshot.id == failed.id)
    }

    // R117, R118. Larger pieces than what is read at once are read while they are sent.
    @Test func `a file that changes while its last bytes are sent from it is uploaded anew`()
        async throws
    {
        let scene = try DialectScene(.resumableUpload)
        let (first, second) = (Scene.bytes(10 << 20), Scene.bytes(10 << 20, seed: 8))
        scene.set { state in
            state.limit = "min-append-size=\(10 << 20)"
            state.checksContentDigest = false
        }
        try scene.scene.write("source.bin", first)
        let gate = Gate()
        scene.plan(.wait(gate)) { $0.method == "PATCH" }
        let client = try await scene.client()
        let id = try await scene.enqueue(client)
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        try scene.scene.write("source.bin", second)
        gate.open()
        let snapshot = try await run.value
        scene.expectUploaded(snapshot, second)
        #expect(snapshot.replaces == id)
        #expect(try await client.transfer(id).errorCode == .fileChanged)
    }

    // R117, R118.
    @Test(arguments: DialectScene.dialects, [600_000, 599_000])
    func `a file that changes while it is read for its hash alone is uploaded anew`(
        dialect: UploadDialect, arrivedCount: Int
    ) async throws {
        let scene = try DialectScene(dialect)
        try scene.scene.write("source.bin", bytes)
        let (id, _) = try await scene.stopUpload(at: "PATCH")
        // All of it, or nearly, arrived before the kill, and nothing of that was recorded.
        try scene.scene.forgetHash()
        let (place, newer) = (scene.scene, Scene.bytes(600_000, seed: 8))
        scene.set { state in
            state.uploads["1"]?.bytes = Array(bytes.prefix(arrivedCount))
            state.uploads["1"]?.isComplete = arrivedCount == bytes.count
        }
        // What is missing is read first, to be sent.
        place.files.beforeRead(after: arrivedCount < bytes.count ? 1 : 0) {
            do {
                try place.write("source.bin", newer)
            } catch {
                Issue.record(error)
            }
        }
        let next = try await scene.client()
        let snapshot = try await next.run(id)
        scene.expectUploaded(snapshot, newer)
        #expect(snapshot.replaces == id)
    }

    @Test(
        arguments: DialectScene.dialects,
        [Reply(status: 200), Reply(status: 303), Reply(status: 403), Reply(status: 400)])
    func `what answers at the address afterwards takes nothing back`(
        dialect: UploadDialect, reply: Reply
    ) async throws {
        let scene = try DialectScene(dialect)
        scene.plan(.answer(reply), count: 1000) { $0.method == "HEAD" }
        scene.expectUploaded(try await scene.upload(bytes), bytes)
        #expect(scene.seen("HEAD").count == 1)
    }

    @Test func `nor after a kill where the last byte is the end`() async throws {
        let scene = try DialectScene(.tus)
        try scene.scene.write("source.bin", bytes)
        let (id, _) = try await scene.stopUpload(at: "HEAD")
        scene.plan(.answer(Reply(status: 200)), count: 1000) { $0.method == "HEAD" }
        scene.expectUploaded(try await scene.client().run(id), bytes)
        #expect(scene.seen("POST").count == 1)
    }

    @Test(arguments: DialectScene.dialects)
    func `an answer of something else before that is no end`(dialect: UploadDialect) async throws {
        let scene = try DialectScene(dialect)
        scene.plan(.fail(.dropped), count: 1000) { $0.method == "PATCH" }
        scene.plan(.answer(Reply(status: 200)), count: 1000) { $0.method == "HEAD" }
        let snapshot = try await scene.upload(bytes)
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .protocolViolation)
    }
}
