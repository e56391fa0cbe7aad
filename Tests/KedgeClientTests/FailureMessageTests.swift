import Foundation
import HTTPTypes
import KedgeClient
import KedgeModel
import Testing

/// R107: the message of a failed transfer.
@Suite(.timeLimit(.minutes(1)))
struct FailureMessageTests {
    private let fixture: TransferEnvironment

    init() throws {
        fixture = try TransferEnvironment()
        try fixture.write("source.bin", TransferEnvironment.bytes(100))
    }

    private func fail(with reply: Reply) async throws -> TransferSnapshot {
        fixture.plan(.answer(reply), count: 100)
        let client = try await fixture.client()
        return try await client.run(
            try await client.enqueueUpload(path: fixture.path("source.bin")))
    }

    private func failure(
        _ status: Int, body: [UInt8] = [], subject: RequestFailure.Subject = .session
    ) -> RequestFailure {
        let reply = ServerReply(
            status: status, headerFields: [:], body: TransportResponseBody { nil },
            url: "https://files.example/x?secret", hasCredentials: false)
        return RequestFailure(reply, body: body, operation: "test", subject: subject)
    }

    // The message names the host that answered, and the status.
    @Test(
        arguments: [
            (401, .session, .unauthenticated), (403, .resource, .forbidden),
            (401, .upload, .unauthenticated), (404, .session, .notKedge), (404, .file, .notKedge),
            (410, .file, .notKedge), (500, .session, .internalError), (429, .file, .busy),
            (413, .session, .requestTooLarge), (413, .resource, .requestTooLarge),
            (418, .resource, .badRequest), (500, .upload, .internalError),
        ] as [(Int, RequestFailure.Subject, ErrorCode)])
    func `an answer that is not Kedge's is reported with its host and status`(
        status: Int, subject: RequestFailure.Subject, code: ErrorCode
    ) {
        let failure = failure(status, subject: subject)
        #expect(failure.code == code)
        #expect(failure.message.contains("files.example:443"))
        #expect(failure.message.contains("status \(status)"))
        #expect(!failure.message.contains("secret"))
        #expect(failure.failedAttempt().host == "files.example")
    }

    private func problem(_ code: ErrorCode, _ detail: String?) -> Reply {
        Reply(problem: code) { $0.detail = detail }
    }

    @Test func `the server's detail is in the message`() async throws {
        let snapshot = try await fail(with: problem(.badRequest, "mimeType is no media type."))
        #expect(snapshot.errorCode == .badRequest)
        #expect(snapshot.message.contains("mimeType is no media type."))
    }

    @Test func `the detail of another server's problem document is in the message`() async throws {
        let body = #"{"type":"https://x.example","title":"No","detail":"Pay first"}"#
        let snapshot = try await fail(with: Reply(status: 402, body: Array(body.utf8)))
        #expect(snapshot.message.contains("Pay first."))
    }

    @Test func `a message does not quote an HTML page and cuts a long detail`() async throws {
        let page = try await fail(with: Reply(status: 400, body: Array("<html>x</html>".utf8)))
        #expect(!page.message.contains("html"))
        let long = failure(
            400, body: problem(.badRequest, String(repeating: "x\n", count: 5000)).body)
        #expect(long.message.count < 400)
        #expect(!long.message.contains("\n"))
    }

    @Test func `a detail that equals the code's sentence is not repeated`() {
        let sentence = ErrorCode.badRequest.facts.sentence
        let failure = failure(400, body: problem(.badRequest, sentence).body)
        #expect(failure.message == sentence)
    }

    @Test(arguments: [ErrorCode.quotaExceeded, .fileTooLarge])
    func `the message has the limit that the server reports`(code: ErrorCode) throws {
        let body = Reply(problem: code) {
            $0.maxBytes = 1001
            ($0.limitBytes, $0.usedBytes, $0.reservedBytes) = (1001, 1002, 1003)
        }.body
        let message = failure(413, body: body).message
        #expect(message.contains("1001 bytes"))
        let hasUsage = message.contains("1002 bytes") && message.contains("1003 bytes")
        #expect(hasUsage == (code == .quotaExceeded))
    }

    @Test func `a file that a link does not permit is not said to be too large for the server`() {
        let detail = "The file is larger than the link permits."
        let message = failure(413, body: problem(.fileTooLarge, detail).body).message
        #expect(message == "The file is too large. \(detail)")
        #expect(advice(.fileTooLarge) == nil)
    }

    @Test func `the message for a blocked owner advises no other token`() {
        let sentence = "The owner is blocked."
        #expect(failure(403, body: problem(.forbidden, sentence).body).message == sentence)
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
        .preconditionFailed, .idempotencyConflict, .redirected,
    ]

    @Test(arguments: hopeless)
    func `a failure without a known remedy gets no advice`(code: ErrorCode) {
        #expect(advice(code) == nil)
    }

    @Test func `a retry from scratch is not advised for a given session`() {
        #expect(advice(.integrityMismatch) != nil)
        #expect(advice(.integrityMismatch, given: .random()) == nil)
        #expect(advice(.sessionExpired, given: .random()) != nil)
    }

    @Test(arguments: [ConnectionCause.trustFileUnreadable, .certificateUntrusted])
    func `the CA file at fault is named`(cause: ConnectionCause) throws {
        var failure = ConnectionFailure(cause, host: "kedge.test", port: 443)
        failure.trustFile = "/etc/own-ca.pem"
        #expect(try #require(failure.text).contains("/etc/own-ca.pem"))
    }

    /// R107.
    @Test func `each cause has a code and a text of its own`() {
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
