internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel

/// Refusals for which the drafts define rules of their own.
enum ResumableUploadRefusal: Error {
    case mismatchingOffset(expected: Int64, provided: Int64)
    case inconsistentLength
    /// A request that continues a completed upload.
    case completedUpload
    case wrongMediaType
    /// All bytes have arrived, but the file cannot be created. Resuming would not help.
    case failedProcessing(EngineError)
    /// The body was interrupted. A client that gets the response should resume.
    case brokenBody(EngineError)
}

/// A problem document of a type that the drafts define, with its members besides ours.
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

/// Translates errors for the protocol version of a request.
struct ResumableUploadErrors {
    let call: ResumableUploadCall
    let context: KedgeRequestContext
    let isComplete: Bool
    /// `Upload-Limit` for clients that sent too much.
    let limits: HTTPFields
    /// Address of the upload that this request created; nil when it must not be resumed.
    var location: String?
    /// Address of the upload that an earlier request created by the same link; nil for none.
    var knownLocation: String?

    /// Runs a handler and translates its errors. An error becomes a response if the drafts define a
    /// problem type for it; otherwise it gets the fields of the version. Errors about the form of
    /// the request are rethrown: they are the same for all protocols.
    func answering(_ body: () async throws -> Response) async throws -> Response {
        do {
            return try await body()
        } catch let refusal as ResumableUploadRefusal {
            return try answer(to: refusal)
        } catch let error as EngineError {
            throw requestError(error)
        }
    }

    private func answer(to refusal: ResumableUploadRefusal) throws -> Response {
        switch refusal {
        case .mismatchingOffset(let expected, let provided):
            var failure = requestError(.offsetMismatch(expected: expected))
            failure.fields[.uploadOffset] = String(expected)
            if let knownLocation { failure.fields[.location] = knownLocation }
            return try answer(.mismatchingOffset, failure, provided: provided)
        case .inconsistentLength:
            let failure = requestError(EngineError(.lengthMismatch))
            return try answer(.inconsistentLength, failure)
        case .completedUpload where call.interopVersion.problemType(.completedUpload) != nil:
            let error = EngineError(.badRequest, "The upload is complete.")
            return try answer(.completedUpload, requestError(error, isComplete: true))
        case .completedUpload:
            let error = EngineError(.lengthMismatch, "The upload is complete.")
            return try answer(.inconsistentLength, requestError(error, isComplete: true))
        case .wrongMediaType:
            let type = call.interopVersion.requiredAppendMediaType ?? "*/*"
            var failure = requestError(
                EngineError(.unsupportedMediaType, "Content-Type must be \(type)."))
            failure.fields[.acceptPatch] = type
            throw failure
        case .failedProcessing(let error):
            throw RequestError(
                error: error, fields: call.stateFields(isComplete: true), reason: error.code)
        case .brokenBody(let error):
            var fields = call.stateFields(isComplete: false)
            fields[.location] = location
            throw RequestError(
                error: EngineError(.unavailable, error.detail, cause: error.cause),
                fields: fields, reason: error.code)
        }
    }

    /// The error with the fields of the protocol version.
    func requestError(_ error: EngineError) -> RequestError {
        requestError(error, isComplete: isComplete)
    }

    private func requestError(_ error: EngineError, isComplete: Bool) -> RequestError {
        let reason = error.code
        var error = error
        // Clients resume after a 5xx, and need not after other statuses.
        if [.busy, .tooManySessions, .requestTimeout, .writerReplaced].contains(error.code) {
            error.detail = error.detail ?? error.code.facts.sentence
            error.code = .unavailable
        }
        // `Upload-Complete: ?1` would mark this as the final answer, which the client expects from
        // the resource that receives the file. So an error about a complete upload omits its state.
        var fields = isComplete ? call.versionFields : call.stateFields(isComplete: false)
        // Clients resume only after these statuses.
        if (error.code.facts.httpStatus ?? 0) >= 500 { fields[.location] = location }
        if error.code.facts.httpStatus == 413 { fields.set(limits) }
        return RequestError(error: error, fields: fields, reason: reason)
    }

    /// - Throws: `failure` when this version does not define the type.
    private func answer(
        _ type: ResumableUploadProblemType, _ failure: RequestError, provided: Int64? = nil
    ) throws -> Response {
        guard let uri = call.interopVersion.problemType(type) else { throw failure }
        let error = failure.error
        var problem = ResumableUploadProblem(
            document: ProblemDocument(
                code: error.code, detail: error.detail, requestId: context.requestID),
            expectedOffset: error.expectedOffset, providedOffset: provided)
        problem.document.type = uri
        problem.document.title = type.title
        problem.document.expectedOffset = error.expectedOffset
        context.logMetadata.set("error.code", error.code.rawValue)
        var response = Response.json(
            problem, status: HTTPResponse.Status(code: problem.document.status),
            contentType: "application/problem+json")
        response.headers.set(failure.fields)
        return response
    }
}
