internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel
internal import Logging
internal import NIOCore
internal import NIOHTTP1

/// Surrounds the handling of every request: identifies the request, turns errors into problem
/// documents, and logs one line. Only ``MethodOverride`` runs before it.
struct RequestMiddleware: RouterMiddleware {
    typealias Context = KedgeRequestContext

    let routes: RouteTable
    let gate: RequestGate
    let metrics: ServiceMetrics
    /// Nil without an audit log.
    let audit: AuditTrail?
    private let forwarding = ForwardingWarning()

    init(routes: RouteTable, gate: RequestGate, audit: AuditTrail?) {
        self.routes = routes
        self.gate = gate
        self.audit = audit
        metrics = routes.metrics
    }

    @concurrent
    func handle(
        _ request: Request, context: KedgeRequestContext,
        next: @concurrent (Request, KedgeRequestContext) async throws -> Response
    ) async throws -> Response {
        let start = ContinuousClock.now
        metrics.requestBegan()
        var context = context
        context.requestID = RequestID.of(request)
        context.logger[metadataKey: "request.id"] = "\(context.requestID)"
        context.logger[metadataKey: "hb.request.id"] = nil
        var response: Response
        var failure: EngineError?
        var reason: ErrorCode?
        var thrown: (any Error)?
        do {
            context.pageRefusal = try gate.admitPermittingLinks(request)
            context.clientBytes = gate.proxies.clientBytes(
                headers: request.headers, peer: context.channel.remoteAddress)
            context.address =
                context.clientBytes.flatMap { ClientAddress(bytes: $0) } ?? .unknown
            if gate.proxies.ignores(request.headers, peer: context.channel.remoteAddress) {
                forwarding.warn(of: context.channel.remoteAddress, to: context.logger)
            }
            if let answer = gate.preflight(
                request, methods: { routes.methods(at: request.uri.path) })
            {
                response = answer
                if let origin = request.headers[.origin] { context.linkedOrigin.set(origin) }
            } else {
                response = try await next(request, context)
            }
        } catch {
            let translated = translate(error, request)
            thrown = error
            failure = translated
            if let refusal = translated.quota { metrics.refused(by: refusal.kind) }
            reason = (error as? RequestError)?.reason ?? translated.code
            response = Self.problem(translated, context)
            // A session lasts longer than a request body: the usual second would be too short.
            if reason == .tooManySessions { response.headers[.retryAfter] = "10" }
            if translated.code == .methodNotAllowed {
                response.headers[.allow] = routes.methods(at: request.uri.path).joined(
                    separator: ", ")
            }
            for field in (error as? RequestError)?.fields ?? [:] {
                response.headers[field.name] = field.value
            }
        }
        if request.method == .head {
            // The headers of the response to GET, without its body. On a persistent connection, the
            // client would read body bytes as the next response.
            let length = response.headers[.contentLength]
            response.body = ResponseBody()
            response.headers[.contentLength] = length
        }
        routes.complete(&response, to: request)
        gate.cors.complete(
            &response, to: request, linkedOrigin: context.linkedOrigin.value)
        response.headers[.xRequestID] = context.requestID
        response.headers[.cacheControl] = response.headers[.cacheControl] ?? "no-store"
        let method = request.method.rawValue
        metrics.requestEnded(
            // Clients may send any method.
            method: routes.isKnown(method) ? method : "other",
            route: context.route,
            uploadProtocol: routes.uploadProtocol(of: request.uri.path, request),
            status: response.status.code, duration: start.duration(to: .now),
            bodyByteCount: context.logMetadata.receivedByteCount, error: reason,
            rateLimit: reason == .rateLimited ? failure?.reason : nil)
        await audit?.record(request, response.status, error: thrown, code: reason, context)
        // The code of the failure itself decides, not the status of the answer: tus and IETF
        // clients get a 5xx for a slow body or a busy service, too, so that they resume.
        let isOurs = (reason?.facts.httpStatus ?? response.status.code) >= 500
        if let reason, reason != failure?.code {
            context.logMetadata.set("error.reason", reason.rawValue)
        }
        let isRoutine = failure == nil && Self.isRoutine(request, response, context)
        let level = isOurs ? Logger.Level.error : isRoutine ? .debug : .info
        log(request, response, failure, context, level, since: start)
        return response
    }

    /// Whether a request is one of very many: about a part of a file that is not finished, or a
    /// check of the process.
    private static func isRoutine(
        _ request: Request, _ response: Response, _ context: KedgeRequestContext
    ) -> Bool {
        guard response.status.code < 400, context.logMetadata.metadata["file.id"] == nil else {
            return false
        }
        return switch request.method {
        case .put, .patch, .head, .options: true
        case .get:
            context.logMetadata.metadata["session.id"] != nil
                || ["/healthz", "/readyz"].contains(request.uri.path)
        default: false
        }
    }

    private func translate(_ error: any Error, _ request: Request) -> EngineError {
        switch error {
        case let error as RequestError: error.error
        case let error as HTTPError where error.status == .notFound:
            EngineError(
                routes.methods(at: request.uri.path).isEmpty ? .routeNotFound : .methodNotAllowed)
        case let error as HTTPError where (400..<500).contains(error.status.code):
            EngineError(.badRequest, cause: RequestCause.text(error))
        case is HTTPParserError:
            EngineError(
                .badRequest, "The body is malformed.", cause: RequestCause.text(error))
        case is NIOTooManyBytesError:
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
        if error.code == .quotaExceeded, let refusal = error.quota {
            document.limitBytes = refusal.limit
            document.usedBytes = refusal.storedBytes
            document.reservedBytes = refusal.reservedBytes
        }
        document.reason = error.reason
        var response = Response.json(
            document, status: HTTPResponse.Status(code: document.status),
            contentType: "application/problem+json")
        if [408, 429, 503, 507].contains(document.status) {
            response.headers[.retryAfter] = String(error.retryAfterSeconds ?? 1)
        }
        return response
    }

    private func log(
        _ request: Request, _ response: Response, _ failure: EngineError?,
        _ context: KedgeRequestContext, _ level: Logger.Level, since start: ContinuousClock.Instant
    ) {
        let duration = start.duration(to: .now)
        var metadata = context.logMetadata.metadata
        metadata["http.method"] = "\(request.method)"
        metadata["http.route"] = "\(context.route)"
        metadata["http.status"] = "\(response.status.code)"
        metadata["duration.ms"] = "\(duration / .milliseconds(1))"
        if let failure {
            metadata["error.code"] = "\(failure.code.rawValue)"
            if let cause = failure.cause { metadata["error.cause"] = "\(cause)" }
        }
        context.logger.log(level: level, "request", metadata: metadata)
    }
}
