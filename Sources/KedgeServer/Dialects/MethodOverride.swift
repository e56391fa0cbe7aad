internal import HTTPTypes
internal import Hummingbird

/// Lets clients that cannot send every method name it in `X-HTTP-Method-Override` (tus 1.0, section
/// "X-HTTP-Method-Override"). Stands before the router, which chooses by method.
struct MethodOverride<Inner: HTTPResponder<KedgeRequestContext>>: HTTPResponder {
    typealias Context = KedgeRequestContext

    let inner: Inner
    /// The field counts here only: elsewhere no client expects it.
    let endpoint: EndpointPath

    @concurrent
    func respond(to request: Request, context: KedgeRequestContext) async throws -> Response {
        // The answer to HEAD has no body, whatever the method in the field.
        guard let name = request.headers[.xHTTPMethodOverride], request.method != .head,
            endpoint.contains(request.uri.path)
        else { return try await inner.respond(to: request, context: context) }
        var head = request.head
        // No address takes what is no method at all.
        head.method = HTTPRequest.Method(name.uppercased()) ?? .connect
        var response = try await inner.respond(
            to: Request(head: head, body: request.body), context: context)
        // The client reads as long a body as is announced; the one that HEAD announces never comes.
        if head.method == .head { response.headers[.contentLength] = "0" }
        return response
    }
}
