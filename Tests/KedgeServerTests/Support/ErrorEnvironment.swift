import Glibc
import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// A server in use, on which each code of the error table can be provoked. It has an upload with a
/// committed and a partial chunk, which no error may change, a finished file, and an older session
/// that expires first.
struct ErrorScene: Sendable {
    static let maxFileSize: Int64 = 1_000_000
    static let maxConcurrentWrites = 2
    static let maxOpenSessions = 8

    let server: RunningServer
    /// Chunk 0 is committed, chunk 1 has 400 bytes, chunk 2 has none.
    let upload: Upload
    let file: FinalizeResponse
    let older: Upload

    static func place() async throws -> ServerPlace {
        try await ServerPlace { configuration in
            configuration.engine.maxFileSize = maxFileSize
            configuration.engine.maxConcurrentWrites = maxConcurrentWrites
            configuration.engine.sessionLifetime = .seconds(1000)
            configuration.engine.maxOpenSessions = maxOpenSessions
        }
    }

    init(_ server: RunningServer) async throws {
        self.server = server
        older = try await server.begin(sampleBytes(10))
        server.place.clock.advance(by: .seconds(500))
        upload = try await server.begin(sampleBytes(2500))
        file = try await server.upload(sampleBytes(5000, seed: 2))
        _ = try await server.ask(upload.put(0))
        try await server.breakOff(1, of: upload, after: 400)
    }

    var filePath: String { "/files/\(file.remoteFileId)" }

    /// Provokes the code and returns the answer.
    func provoke(_ code: ErrorCode) async throws -> HTTPAnswer {
        let provocation = try #require(Self.provocations[code])
        return try await provocation(self)
    }

    /// Another upload, for errors that need a change.
    func another() async throws -> Upload { try await server.begin(sampleBytes(2500, seed: 3)) }

    /// The digest of no content in these tests.
    static let foreignDigest = String(repeating: "ab", count: 32)
}

extension ErrorScene {
    typealias Provocation = @Sendable (ErrorScene) async throws -> HTTPAnswer

    /// One way to provoke each code that has a status. A code that cannot be met over HTTP does not
    /// belong into the table.
    static let provocations: [ErrorCode: Provocation] =
        sessionProvocations
        .merging(chunkProvocations) { $1 }.merging(fileProvocations) { $1 }
        .merging(requestProvocations) { $1 }.merging(loadProvocations) { $1 }
        .merging(tusProvocations) { $1 }

    private static let sessionProvocations: [ErrorCode: Provocation] = [
        .sessionNotFound: { scene in
            try await scene.server.get("/uploads/sessions/\(SessionID.random())")
        },
        .sessionExpired: { scene in
            scene.server.place.clock.advance(by: .seconds(750))
            return try await scene.server.ask(scene.older.put(0))
        },
        .sessionClosed: { scene in
            let canceled = try await scene.another()
            _ = try await scene.server.ask(HTTPRequestBytes("DELETE", canceled.path))
            return try await scene.server.ask(canceled.put(0))
        },
        .missingChunks: { scene in try await scene.server.ask(scene.upload.finalize()) },
        .sizeMismatch: { scene in
            // Native sessions declare their size at creation; this one is of another protocol.
            let id = try await scene.server.engine.createSession(
                .init(fileName: "log.bin", fileSize: nil), owner: .anonymous
            ).sessionId
            return try await scene.server.ask(
                HTTPRequestBytes("POST", "/uploads/sessions/\(id)/finalize"))
        },
        .integrityMismatch: { scene in
            let other = try await scene.another()
            for index in 0..<other.chunkCount { _ = try await scene.server.ask(other.put(index)) }
            return try await scene.server.ask(other.finalize(SHA256Digest(hex: foreignDigest)))
        },
        .idempotencyConflict: { scene in
            let key = [("Idempotency-Key", "one")]
            _ = try await scene.server.ask(
                .createSession(.init(fileName: "a", fileSize: 1), key))
            return try await scene.server.ask(
                .createSession(.init(fileName: "b", fileSize: 1), key))
        },
        .fileTooLarge: { scene in
            try await scene.server.ask(
                .createSession(.init(fileName: "a", fileSize: maxFileSize + 1)))
        },
    ]

    private static let chunkProvocations: [ErrorCode: Provocation] = [
        .chunkOutOfBounds: { scene in
            var put = scene.upload.put(2)
            put.target = "\(scene.upload.path)/chunks/3"
            return try await scene.server.ask(put)
        },
        .chunkHashRequired: { scene in
            try await scene.server.ask(scene.upload.put(2).with([("X-Chunk-Hash", nil)]))
        },
        .rangeMismatch: { scene in
            try await scene.server.ask(
                scene.upload.put(2).with([("Content-Range", "bytes 0-999/2500")]))
        },
        .lengthMismatch: { scene in
            var put = scene.upload.put(2)
            put.body?.append(0)
            return try await scene.server.ask(put)
        },
        .chunkHashMismatch: { scene in
            var put = scene.upload.put(2)
            put.body?[0] ^= 1
            return try await scene.server.ask(put)
        },
        .chunkConflict: { scene in
            try await scene.server.ask(
                scene.upload.put(0).with([("X-Chunk-Hash", "sha256=\(foreignDigest)")]))
        },
        .offsetMismatch: { scene in try await scene.server.ask(scene.upload.put(1, from: 401)) },
        .writerReplaced: { scene in
            let other = try await scene.another()
            let first = try await scene.server.hold(0, of: other)
            _ = try await scene.server.ask(other.put(0))
            return try await first.answer()
        },
    ]

    private static let fileProvocations: [ErrorCode: Provocation] = [
        .fileNotFound: { scene in try await scene.server.get("/files/\(FileID.random())") },
        .fileGone: { scene in
            _ = try await scene.server.ask(HTTPRequestBytes("DELETE", scene.filePath))
            return try await scene.server.get(scene.filePath)
        },
        .fileDamaged: { scene in
            let hex = scene.file.fileHashSha256.hex
            let parent = "\(hex.prefix(2))/\(hex.dropFirst(2).prefix(2))"
            let blob = "\(scene.server.place.configuration.dataDirectory)/blobs/\(parent)/\(hex)"
            #expect(truncate(blob, 1000) == 0)
            return try await scene.server.get(scene.filePath)
        },
        .preconditionFailed: { scene in
            try await scene.server.get(scene.filePath, [("If-Match", "\"other\"")])
        },
        .rangeNotSatisfiable: { scene in
            try await scene.server.get(scene.filePath, [("Range", "bytes=5000-")])
        },
    ]

    private static let requestProvocations: [ErrorCode: Provocation] = [
        .badRequest: { scene in try await scene.server.ask(.json("POST", "/uploads/sessions", "{"))
        },
        .routeNotFound: { scene in try await scene.server.get("/nowhere") },
        .methodNotAllowed: { scene in
            try await scene.server.ask(HTTPRequestBytes("PATCH", "/files"))
        },
        .unsupportedMediaType: { scene in
            try await scene.server.ask(
                HTTPRequestBytes("POST", "/uploads/sessions", body: Array("{}".utf8)))
        },
        .unsupportedTransferCoding: { scene in
            try await scene.server.ask(
                HTTPRequestBytes("POST", "/files", [("Transfer-Encoding", "gzip, chunked")]))
        },
        .expectationFailed: { scene in
            try await scene.server.ask(
                HTTPRequestBytes("POST", "/files", [("Expect", "200-ok")], body: [1]))
        },
        .requestTooLarge: { scene in
            try await scene.server.ask(
                .json("POST", "/uploads/sessions", String(repeating: " ", count: 65_537)))
        },
    ]

    private static let loadProvocations: [ErrorCode: Provocation] = [
        .storageFull: { scene in
            scene.server.place.disk.fail(after: 0, of: .write, with: ENOSPC)
            return try await scene.server.ask(scene.upload.put(2))
        },
        .requestTimeout: { scene in
            let held = try await scene.server.hold(2, of: scene.another())
            return try await held.answer()
        },
        .busy: { scene in
            let other = try await scene.another()
            var held: [HTTPConnection] = []
            for index in 0..<maxConcurrentWrites {
                held.append(try await scene.server.hold(index, of: other))
            }
            let answer = try await scene.server.ask(scene.upload.put(2))
            for connection in held {
                try await connection.finishSending()
                _ = try await connection.answer()
            }
            return answer
        },
        .tooManySessions: { scene in
            for _ in 0..<maxOpenSessions {
                let create = CreateSessionRequest(
                    fileName: "log.bin", fileSize: 2500, chunkSize: 1000)
                let answer = try await scene.server.ask(.createSession(create))
                guard answer.status == 201 else { return answer }
                let session = try answer.decoded(CreateSessionResponse.self).sessionId
                let other = Upload(
                    content: sampleBytes(2500, seed: 3), chunkSize: 1000, id: session)
                _ = try await scene.server.ask(other.put(0))
            }
            return try await scene.server.ask(
                .createSession(CreateSessionRequest(fileName: "log.bin", fileSize: 2500)))
        },
        .unavailable: { scene in
            scene.server.place.disk.fail(after: 0, of: .open)
            return try await scene.server.get("/readyz")
        },
        .internalError: { scene in
            scene.server.place.disk.fail(after: 0, of: .open)
            return try await scene.server.get(scene.filePath)
        },
    ]
}
