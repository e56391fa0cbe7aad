import Glibc
import KedgeEngine
import KedgeModel
import KedgeServer
import KedgeTesting
import Testing

/// A server in use, on which each code of the error table can be provoked. It has an upload with a
/// committed and a partial chunk, which no error may change, a finished file, and an older session
/// that expires first.
struct ErrorEnvironment: Sendable {
    static let maxFileSize: Int64 = 1_000_000
    static let maxConcurrentWrites = 2
    static let maxOpenSessions = 8

    let server: RunningServer
    /// Chunk 0 is committed, chunk 1 has 400 bytes, chunk 2 has none.
    let upload: Upload
    let file: FinalizeResponse
    let older: Upload

    static func fixture() async throws -> ServerEnvironment {
        try await ServerEnvironment { configuration in
            configuration.engine.maxFileSize = maxFileSize
            configuration.engine.maxConcurrentWrites = maxConcurrentWrites
            configuration.engine.sessionLifetime = .seconds(1000)
            configuration.engine.maxOpenSessions = maxOpenSessions
        }
    }

    init(_ server: RunningServer) async throws {
        self.server = server
        older = try await server.begin(sampleBytes(10))
        server.fixture.clock.advance(by: .seconds(500))
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

extension ErrorEnvironment {
    typealias Provocation = @Sendable (ErrorEnvironment) async throws -> HTTPAnswer

    /// One way to provoke each code that has a status. A code that cannot be met over HTTP does not
    /// belong into the table.
    static let provocations: [ErrorCode: Provocation] =
        sessionProvocations
        .merging(chunkProvocations) { $1 }.merging(fileProvocations) { $1 }
        .merging(requestProvocations) { $1 }.merging(loadProvocations) { $1 }
        .merging(tusProvocations) { $1 }

    private static let sessionProvocations: [ErrorCode: Provocation] = [
        .sessionNotFound: { fixture in
            try await fixture.server.get("/uploads/sessions/\(SessionID.random())")
        },
        .sessionExpired: { fixture in
            fixture.server.fixture.clock.advance(by: .seconds(750))
            return try await fixture.server.ask(fixture.older.put(0))
        },
        .sessionClosed: { fixture in
            let canceled = try await fixture.another()
            _ = try await fixture.server.ask(HTTPRequestBytes("DELETE", canceled.path))
            return try await fixture.server.ask(canceled.put(0))
        },
        .missingChunks: { fixture in try await fixture.server.ask(fixture.upload.finalize()) },
        .sizeMismatch: { fixture in
            // Native sessions declare their size at creation; this one is of another protocol.
            let id = try await fixture.server.engine.createSession(
                .init(fileName: "log.bin", fileSize: nil), owner: .anonymous
            ).sessionId
            return try await fixture.server.ask(
                HTTPRequestBytes("POST", "/uploads/sessions/\(id)/finalize"))
        },
        .integrityMismatch: { fixture in
            let other = try await fixture.another()
            for index in 0..<other.chunkCount { _ = try await fixture.server.ask(other.put(index)) }
            return try await fixture.server.ask(other.finalize(SHA256Digest(hex: foreignDigest)))
        },
        .idempotencyConflict: { fixture in
            let key = [("Idempotency-Key", "one")]
            _ = try await fixture.server.ask(
                .createSession(.init(fileName: "a", fileSize: 1), key))
            return try await fixture.server.ask(
                .createSession(.init(fileName: "b", fileSize: 1), key))
        },
        .fileTooLarge: { fixture in
            try await fixture.server.ask(
                .createSession(.init(fileName: "a", fileSize: maxFileSize + 1)))
        },
    ]

    private static let chunkProvocations: [ErrorCode: Provocation] = [
        .chunkOutOfBounds: { fixture in
            var put = fixture.upload.put(2)
            put.target = "\(fixture.upload.path)/chunks/3"
            return try await fixture.server.ask(put)
        },
        .chunkHashRequired: { fixture in
            try await fixture.server.ask(fixture.upload.put(2).with([("X-Chunk-Hash", nil)]))
        },
        .rangeMismatch: { fixture in
            try await fixture.server.ask(
                fixture.upload.put(2).with([("Content-Range", "bytes 0-999/2500")]))
        },
        .lengthMismatch: { fixture in
            var put = fixture.upload.put(2)
            put.body?.append(0)
            return try await fixture.server.ask(put)
        },
        .chunkHashMismatch: { fixture in
            var put = fixture.upload.put(2)
            put.body?[0] ^= 1
            return try await fixture.server.ask(put)
        },
        .chunkConflict: { fixture in
            try await fixture.server.ask(
                fixture.upload.put(0).with([("X-Chunk-Hash", "sha256=\(foreignDigest)")]))
        },
        .offsetMismatch: { fixture in try await fixture.server.ask(fixture.upload.put(1, from: 401))
        },
        .writerReplaced: { fixture in
            let other = try await fixture.another()
            let first = try await fixture.server.hold(0, of: other)
            _ = try await fixture.server.ask(other.put(0))
            return try await first.answer()
        },
    ]

    private static let fileProvocations: [ErrorCode: Provocation] = [
        .fileNotFound: { fixture in try await fixture.server.get("/files/\(FileID.random())") },
        .fileGone: { fixture in
            _ = try await fixture.server.ask(HTTPRequestBytes("DELETE", fixture.filePath))
            return try await fixture.server.get(fixture.filePath)
        },
        .fileDamaged: { fixture in
            let hex = fixture.file.fileHashSha256.hex
            let parent = "\(hex.prefix(2))/\(hex.dropFirst(2).prefix(2))"
            let blob =
                "\(fixture.server.fixture.configuration.dataDirectory)/blobs/\(parent)/\(hex)"
            #expect(truncate(blob, 1000) == 0)
            return try await fixture.server.get(fixture.filePath)
        },
        .preconditionFailed: { fixture in
            try await fixture.server.get(fixture.filePath, [("If-Match", "\"other\"")])
        },
        .rangeNotSatisfiable: { fixture in
            try await fixture.server.get(fixture.filePath, [("Range", "bytes=5000-")])
        },
    ]

    private static let requestProvocations: [ErrorCode: Provocation] = [
        .badRequest: { fixture in
            try await fixture.server.ask(.json("POST", "/uploads/sessions", "{"))
        },
        .routeNotFound: { fixture in try await fixture.server.get("/nowhere") },
        .methodNotAllowed: { fixture in
            try await fixture.server.ask(HTTPRequestBytes("PATCH", "/files"))
        },
        .unsupportedMediaType: { fixture in
            try await fixture.server.ask(
                HTTPRequestBytes("POST", "/uploads/sessions", body: Array("{}".utf8)))
        },
        .unsupportedTransferCoding: { fixture in
            try await fixture.server.ask(
                HTTPRequestBytes("POST", "/files", [("Transfer-Encoding", "gzip, chunked")]))
        },
        .expectationFailed: { fixture in
            try await fixture.server.ask(
                HTTPRequestBytes("POST", "/files", [("Expect", "200-ok")], body: [1]))
        },
        .requestTooLarge: { fixture in
            try await fixture.server.ask(
                .json("POST", "/uploads/sessions", String(repeating: " ", count: 65_537)))
        },
    ]

    private static let loadProvocations: [ErrorCode: Provocation] = [
        .storageFull: { fixture in
            fixture.server.fixture.disk.fail(after: 0, of: .write, with: ENOSPC)
            return try await fixture.server.ask(fixture.upload.put(2))
        },
        .requestTimeout: { fixture in
            let held = try await fixture.server.hold(2, of: fixture.another())
            return try await held.answer()
        },
        .busy: { fixture in
            let other = try await fixture.another()
            var held: [ClientConnection] = []
            for index in 0..<maxConcurrentWrites {
                held.append(try await fixture.server.hold(index, of: other))
            }
            let answer = try await fixture.server.ask(fixture.upload.put(2))
            for connection in held {
                try await connection.finishSending()
                _ = try await connection.answer()
            }
            return answer
        },
        .tooManySessions: { fixture in
            for _ in 0..<maxOpenSessions {
                let create = CreateSessionRequest(
                    fileName: "log.bin", fileSize: 2500, chunkSize: 1000)
                let answer = try await fixture.server.ask(.createSession(create))
                guard answer.status == 201 else { return answer }
                let session = try answer.decoded(CreateSessionResponse.self).sessionId
                let other = Upload(
                    content: sampleBytes(2500, seed: 3), chunkSize: 1000, id: session)
                _ = try await fixture.server.ask(other.put(0))
            }
            return try await fixture.server.ask(
                .createSession(CreateSessionRequest(fileName: "log.bin", fileSize: 2500)))
        },
        .unavailable: { fixture in
            fixture.server.fixture.disk.fail(after: 0, of: .open)
            return try await fixture.server.get("/readyz")
        },
        .internalError: { fixture in
            fixture.server.fixture.disk.fail(after: 0, of: .open)
            return try await fixture.server.get(fixture.filePath)
        },
    ]
}
