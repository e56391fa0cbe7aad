internal import HTTPTypes
internal import Hummingbird

/// Applies `X-HTTP-Method-Override` for clients that cannot send every method (tus 1.0, section
/// "X-HTTP-Method-Override"). Comes before the router, which matches by method.
struct MethodOverride<Inner: HTTPResponder<KedgeRequestContext>>: HTTPResponder {
    typealias Context = KedgeRequestContext

    let inner: Inner
    /// The only path at which the field counts. Clients do not expect it elsewhere.
    let endpoint: EndpointPath

    @concurrent
    func respond(to request: Request, context: KedgeRequestContext) async throws -> Response {
        // A response to HEAD has no body, whatever method the field names.
        guard let name = request.headers[.xHTTPMethodOverride], request.method != .head,
            endpoint.contains(request.uri.path)
        else { return try await inner.respond(to: request, context: context) }
        var head = request.head
        // No route accepts the method that replaces an invalid name.
        head.method = HTTPRequest.Method(name.uppercased()) ?? .connect
        var response = try await inner.respond(
            to: Request(head: head, body: request.body), context: context)
        // The client did not send HEAD, so it expects a body of the announced length.
        if head.method == .head { response.headers[.contentLength] = "0" }
        return response
    }
}
