internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// Why a request to an upload is refused, where the drafts have rules of their own for it.
enum ResumableUploadRefusal: Error {
    case mismatchingOffset(expected: Int64, provided: Int64)
    case inconsistentLength
    /// The end was told before, and this is more.
    case completedUpload
    case wrongMediaType
    /// All bytes are here, and what they are to become is refused: resuming would not help.
    case failedProcessing(EngineError)
    /// The body ends too early, and whoever still hears of it is to resume.
    case brokenBody(EngineError)
}

/// A problem document of a type that the drafts define, with its members beside ours.
private struct ResumableUploadProblem: Encodable {
    var document: ProblemDocument
    var expectedOffset: Int64?
    var providedOffset: Int64?

    private enum CodingKeys: String, CodingKey {
        case expectedOffset = "expected-offset"
        case providedOffset = "provided-offset"
    }

    func encode(to encoder: any Encoder) throws {
        try document.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(expectedOffset, forKey: .expectedOffset)
        try container.encodeIfPresent(providedOffset, forKey: .providedOffset)
    }
}

/// Tells errors as the dialect of a request has them.
struct ResumableUploadErrors {
    let call: ResumableUploadCall
    let context: KedgeRequestContext
    /// True when the upload is complete.
    let isComplete: Bool
    /// `Upload-Limit` for those who sent too much.
    let limits: HTTPFields
    /// Address of the upload that this request made; nil when nobody may resume it.
    var location: String?

    /// Runs a handler. What it throws becomes an answer where the drafts have a type for it, and gets the
    /// fields of the dialect otherwise. Errors of the request's form pass: they are the same for everybody.
    func answering(_ body: () async throws -> Response) async throws -> Response {
        do {
            return try await body()
        } catch let refusal as ResumableUploadRefusal {
            return try answer(to: refusal)
        } catch let error as EngineError {
            throw dialectError(error)
        }
    }

    private func answer(to refusal: ResumableUploadRefusal) throws -> Response {
        switch refusal {
        case .mismatchingOffset(let expected, let provided):
            var error = EngineError(.offsetMismatch)
            error.expectedOffset = expected
            var failure = dialectError(error)
            failure.fields[.uploadOffset] = String(expected)
            return try answer(.mismatchingOffset, failure, provided: provided)
        case .inconsistentLength:
            let failure = dialectError(EngineError(.lengthMismatch))
            return try answer(.inconsistentLength, failure)
        case .completedUpload where call.dialect.problemType(.completedUpload) != nil:
            let error = EngineError(.badRequest, "The upload is complete.")
            return try answer(.completedUpload, dialectError(error, isComplete: true))
        case .completedUpload:
            let error = EngineError(.lengthMismatch, "The upload is complete.")
            return try answer(.inconsistentLength, dialectError(error, isComplete: true))
        case .wrongMediaType:
            let type = call.dialect.appendMediaType ?? "*/*"
            var failure = dialectError(
                EngineError(.unsupportedMediaType, "An append is \(type)."))
            failure.fields[.acceptPatch] = type
            throw failure
        case .failedProcessing(let error):
            throw DialectError(
                error: error, fields: call.stateFields(isComplete: true), reason: error.code)
        case .brokenBody(let error):
            var fields = call.stateFields(isComplete: false)
            fields[.location] = location
            throw DialectError(
                error: EngineError(.unavailable, error.detail, cause: error.cause),
                fields: fields, reason: error.code)
        }
    }

    /// The error with the fields of the dialect.
    func dialectError(_ error: EngineError) -> DialectError {
        dialectError(error, isComplete: isComplete)
    }

    private func dialectError(_ error: EngineError, isComplete: Bool) -> DialectError {
        let reason = error.code
        var error = error
        // Clients resume after a status from 500 on, and need not after another below.
        if [.busy, .tooManySessions, .requestTimeout, .writerReplaced].contains(error.code) {
            error.detail = error.detail ?? error.code.facts.sentence
            error.code = .unavailable
        }
        // With `?1` the answer would be that of the resource that the file is for, and final; this one is about
        // the upload. Of a complete one that leaves nothing to say.
        var fields = isComplete ? call.versionFields : call.stateFields(isComplete: false)
        // Clients resume after these alone.
        if (error.code.facts.httpStatus ?? 0) >= 500 { fields[.location] = location }
        if error.code.facts.httpStatus == 413 { fields.set(limits) }
        return DialectError(error: error, fields: fields, reason: reason)
    }

    /// - Throws: The failure when this version has no type for it.
    private func answer(
        _ type: ResumableUploadProblemType, _ failure: DialectError, provided: Int64? = nil
    ) throws -> Response {
        guard let uri = call.dialect.problemType(type) else { throw failure }
        let error = failure.error
        var problem = ResumableUploadProblem(
            document: ProblemDocument(
                code: error.code, detail: error.detail, requestId: context.requestID),
            expectedOffset: error.expectedOffset, providedOffset: provided)
        problem.document.type = uri
        problem.document.title = type.title
        problem.document.expectedOffset = error.expectedOffset
        context.notes.set("error.code", error.code.rawValue)
        var response = Response.json(
            problem, status: HTTPResponse.Status(code: problem.document.status),
            contentType: "application/problem+json")
        response.headers.set(failure.fields)
        return response
    }
}
