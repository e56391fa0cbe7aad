internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel
internal import Logging
internal import NIOCore

/// The outermost layer: names the request, turns errors into problem documents, logs one line.
struct RequestMiddleware: RouterMiddleware {
    typealias Context = KedgeRequestContext

    let routes: RouteTable
    let gate: RequestGate

    @concurrent
    func handle(
        _ request: Request, context: KedgeRequestContext,
        next: @concurrent (Request, KedgeRequestContext) async throws -> Response
    ) async throws -> Response {
        let start = ContinuousClock.now
        var context = context
        context.requestID = Self.requestID(of: request)
        context.logger[metadataKey: "request.id"] = "\(context.requestID)"
        context.logger[metadataKey: "hb.request.id"] = nil
        var response: Response
        var failure: EngineError?
        do {
            context.principal = try gate.principal(of: request)
            response = try await next(request, context)
        } catch {
            let translated = translate(error, request)
            failure = translated
            response = Self.problem(translated, context)
            if translated.code == .methodNotAllowed {
                response.headers[.allow] = routes.methods(at: request.uri.path).joined(
                    separator: ", ")
            }
            if let error = error as? RangeNotSatisfiable {
                response.headers[.contentRange] =
                    ContentRange(range: nil, total: error.fileSize).description
            }
        }
        if request.method == .head {
            // The headers of the answer to GET, and not one byte more: on a connection that stays
            // open it would be read as the beginning of the next answer.
            let length = response.headers[.contentLength]
            response.body = ResponseBody()
            response.headers[.contentLength] = length
        }
        response.headers[.xRequestID] = context.requestID
        response.headers[.cacheControl] = response.headers[.cacheControl] ?? "no-store"
        log(request, response, failure, context, start.duration(to: .now))
        return response
    }

    private static func requestID(of request: Request) -> String {
        if let given = request.headers[.xRequestID], (1...64).contains(given.utf8.count),
            given.utf8.allSatisfy({ isPlain($0) })
        {
            return given
        }
        return Hex.encode((0..<8).map { _ in UInt8.random(in: .min ... .max) })
    }

    private static func isPlain(_ character: UInt8) -> Bool {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"),
            UInt8(ascii: "."):
            true
        default: false
        }
    }

    private func translate(_ error: any Error, _ request: Request) -> EngineError {
        switch error {
        case let error as HTTPError where error.status == .notFound:
            EngineError(
                routes.methods(at: request.uri.path).isEmpty ? .routeNotFound : .methodNotAllowed)
        case is RangeNotSatisfiable:
            EngineError(.rangeNotSatisfiable)
        case let error as HTTPError where (400..<500).contains(error.status.code):
            EngineError(.badRequest, cause: String(reflecting: error))
        case is NIOTooManyBytesError, is TooLargeBodyError:
            EngineError(.requestTooLarge)
        case is SlowBodyError:
            EngineError(.requestTimeout)
        default:
            EngineError(translating: error)
        }
    }

    private static func problem(_ error: EngineError, _ context: KedgeRequestContext) -> Response {
        var document = ProblemDocument(
            code: error.code, detail: error.detail, requestId: context.requestID)
        document.missingRanges = error.missing?.map { [$0.lowerBound, $0.upperBound] }
        document.expectedOffset = error.expectedOffset
        document.actualSha256 = error.actualDigest
        document.expectedSha256 = error.expectedDigest
        document.maxBytes = error.maxBytes
        var response = Response.json(
            document, status: HTTPResponse.Status(code: document.status),
            contentType: "application/problem+json")
        if [408, 429, 503, 507].contains(document.status) { response.headers[.retryAfter] = "1" }
        return response
    }

    private func log(
        _ request: Request, _ response: Response, _ failure: EngineError?,
        _ context: KedgeRequestContext, _ duration: Duration
    ) {
        var metadata = context.notes.metadata
        metadata["http.method"] = "\(request.method)"
        metadata["http.route"] = "\(context.endpointPath ?? "unknown")"
        metadata["http.status"] = "\(response.status.code)"
        metadata["duration.ms"] = "\(duration / .milliseconds(1))"
        if let failure {
            metadata["error.code"] = "\(failure.code.rawValue)"
            if let cause = failure.cause { metadata["error.cause"] = "\(cause)" }
        }
        let level: Logger.Level = response.status.code >= 500 ? .error : .info
        context.logger.log(level: level, "request", metadata: metadata)
    }
}
