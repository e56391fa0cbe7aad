internal import HTTPTypes
internal import KedgeEngine
internal import KedgeModel

/// A refusal of a request, with the response fields that explain it to clients.
struct RequestError: Error {
    /// The error that the client receives.
    var error: EngineError
    /// Response fields besides the problem document.
    var fields: HTTPFields
    /// The code of the failure itself, for the log and for `Retry-After`. A tus or IETF client
    /// receives another code instead of some, because it resumes only after certain statuses.
    var reason: ErrorCode
}

extension RequestError {
    private init(_ error: EngineError, fields: HTTPFields = [:]) {
        self.init(error: error, fields: fields, reason: error.code)
    }

    /// The body has a `Content-Encoding`.
    static let encodedBody = RequestError(
        EngineError(
            .unsupportedMediaType, "Send the bytes as they are, without Content-Encoding."),
        // States that the coding is the reason, not the media type (RFC 9110 section 15.5.16).
        fields: [.acceptEncoding: "identity"])

    /// The request has no credential.
    static let noCredential = RequestError(
        EngineError(.unauthenticated), fields: [.wwwAuthenticate: challenge])

    /// The request has a credential that is not valid (RFC 6750 section 3.1).
    static func badCredential(_ sentence: String) -> RequestError {
        RequestError(
            EngineError(.unauthenticated, sentence),
            fields: [.wwwAuthenticate: "\(challenge), error=\"invalid_token\""])
    }

    /// Whether the error refuses a credential that the request presents. A request without one
    /// guesses nothing.
    static func refusesCredential(_ error: any Error) -> Bool {
        if let error = error as? EngineError { return error.code == .linkInvalid }
        guard let error = error as? RequestError else { return false }
        // RFC 6750 section 3.1: only then does the challenge have an error.
        return error.reason == .linkInvalid
            || (error.reason == .unauthenticated && error.fields[.wwwAuthenticate] != challenge)
    }

    private static let challenge = "Bearer realm=\"kedge\""

    /// A JSON body exceeds the size limit.
    static let tooLargeBody = RequestError(EngineError(.requestTooLarge))

    /// No byte of the file is in the requested range.
    static func rangeNotSatisfiable(fileSize: Int64) -> RequestError {
        RequestError(
            EngineError(.rangeNotSatisfiable),
            fields: [.contentRange: ContentRange(range: nil, total: fileSize).description])
    }

    /// Turns `FILE_DAMAGED` into 410 for requests that ask for the offset of an upload. Clients
    /// then start the upload again, and the same bytes repair the file. After a 500 they would
    /// retry forever.
    static func reportingDamageAsGone<Value>(
        fields: HTTPFields = [:], _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let error as EngineError where error.code == .fileDamaged {
            throw RequestError(
                error: EngineError(.fileGone, error.code.facts.sentence), fields: fields,
                reason: error.code)
        }
    }
}
