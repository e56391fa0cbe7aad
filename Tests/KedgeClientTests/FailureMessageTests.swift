import Foundation
import HTTPTypes
import KedgeCurl
import KedgeModel
import Testing

@testable import KedgeClient

/// R107: what a person reads when a transfer failed.
@Suite(.timeLimit(.minutes(1)))
struct FailureMessageTests {
    private let scene: Scene

    init() throws {
        scene = try Scene()
        try scene.write("source.bin", Scene.bytes(100))
    }

    private func fail(with reply: Reply) async throws -> TransferSnapshot {
        scene.plan(.answer(reply), count: 100)
        let client = try await scene.client()
        return try await client.run(
            try await client.enqueueUpload(path: scene.path("source.bin")))
    }

    private func failure(
        _ status: Int, body: [UInt8] = [], subject: RequestFailure.Subject = .session
    ) -> RequestFailure {
        let reply = ServerReply(
            status: status, headerFields: [:], body: TransportResponseBody { nil },
            url: "https://files.example/x?secret", hasCredentials: false)
        return RequestFailure(reply, body: body, operation: "test", subject: subject)
    }

    // Where and why: what answered is named, with its status.
    @Test(
        arguments: [
            (401, .session, .badRequest), (404, .session, .notKedge), (404, .file, .notKedge),
            (410, .file, .notKedge), (500, .session, .internalError), (429, .file, .busy),
            (413, .session, .requestTooLarge), (413, .resource, .requestTooLarge),
            (418, .resource, .badRequest), (500, .upload, .internalError),
        ] as [(Int, RequestFailure.Subject, ErrorCode)])
    func `an answer that is no Kedge's names who gave it`(
        status: Int, subject: RequestFailure.Subject, code: ErrorCode
    ) {
        let failure = failure(status, subject: subject)
        #expect(failure.code == code)
        #expect(failure.message.contains("files.example:443"))
        #expect(failure.message.contains("status \(status)"))
        #expect(!failure.message.contains("secret"))
        #expect(failure.failedAttempt().host == "files.example")
    }

    // One that is in the transport's list only would have no words.
    @Test func `every reason of the transport is a cause`() {
        let reasons = CurlError.Reason.allCases.map(\.rawValue)
        #expect(reasons == ConnectionCause.allCases.map(\.rawValue))
    }

    private func problem(_ code: ErrorCode, _ detail: String?) -> Reply {
        Reply(problem: code) { $0.detail = detail }
    }

    @Test func `the server's detail reaches the person`() async throws {
        let snapshot = try await fail(with: problem(.badRequest, "mimeType is no media type."))
        #expect(snapshot.errorCode == .badRequest)
        #expect(snapshot.message.contains("mimeType is no media type."))
    }

    @Test func `the detail of another server's problem document reaches the person`() async throws {
        let body = #"{"type":"https://x.example","title":"No","detail":"Pay first"}"#
        let snapshot = try await fail(with: Reply(status: 402, body: Array(body.utf8)))
        #expect(snapshot.message.contains("Pay first."))
    }

    @Test func `a page is not quoted, and much text is cut`() async throws {
        let page = try await fail(with: Reply(status: 400, body: Array("<html>x</html>".utf8)))
        #expect(!page.message.contains("html"))
        let long = failure(
            400, body: problem(.badRequest, String(repeating: "x\n", count: 5000)).body)
        #expect(long.message.count < 400)
        #expect(!long.message.contains("\n"))
    }

    @Test func `a detail that says nothing new is not repeated`() {
        let sentence = ErrorCode.badRequest.facts.sentence
        let failure = failure(400, body: problem(.badRequest, sentence).body)
        #expect(failure.message == sentence)
    }

    private func advice(_ code: ErrorCode, given: SessionID? = nil) -> String? {
        var status = TransferStatus(
            id: .random(), serverURL: "http://kedge.test",
            createdAt: Timestamp(millisecondsSinceEpoch: 0))
        status.lastErrorCode = code
        var upload = UploadTransfer(
            status: status, path: "/f", fileName: "f",
            identity: SourceIdentity(byteCount: 1, modifiedNanoseconds: 0, inode: 1),
            mimeType: nil, chunkSize: 1, idempotencyKey: "k")
        upload.givenSessionID = given
        return FailureAdvice.text(for: .upload(upload))
    }

    static let hopeless: [ErrorCode] = [
        .badRequest, .routeNotFound, .methodNotAllowed, .unsupportedMediaType, .protocolViolation,
        .uploadVersionUnsupported, .usage, .storeDamaged, .fileNotFound, .sessionExpired,
        .preconditionFailed, .idempotencyConflict,
    ]

    @Test(arguments: hopeless)
    func `where nothing is known to help there is no advice`(code: ErrorCode) {
        #expect(advice(code) == nil)
    }

    @Test func `a retry from scratch is not advised for a session that a person named`() {
        #expect(advice(.integrityMismatch) != nil)
        #expect(advice(.integrityMismatch, given: .random()) == nil)
        #expect(advice(.sessionExpired, given: .random()) != nil)
    }

    /// R107: each cause has a code and a text of its own.
    @Test func `causes are told apart by code and text`() {
        let causes: [ErrorCode] = [
            .storageFull, .diskFull, .fileMissing, .fileChanged, .fileTruncated,
            .integrityMismatch, .fileTooLarge, .sessionFileMismatch, .destinationExists,
            .remoteChanged, .fileDamaged, .offline, .busy, .unavailable,
        ]
        let texts = causes.map { "\($0.facts.sentence) \(advice($0) ?? "")" }
        #expect(Set(texts).count == causes.count)
        #expect(Set(causes.map(\.facts.sentence)).count == causes.count)
        #expect(Set(ErrorCode.allCases.map(\.facts.sentence)).count == ErrorCode.allCases.count)
    }
}
