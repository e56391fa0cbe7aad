internal import HTTPTypes
internal import Hummingbird
internal import KedgeHash
internal import KedgeModel
internal import NIOCore

/// The service itself: what it is, and its contract.
struct ServiceRoutes: Sendable {
    private static let contractETag =
        "\"sha256-\(SHA256Hasher.digest(of: Array(EmbeddedContract.text.utf8)).hex)\""

    private struct Description: Encodable {
        var name = ServerDescription.serviceName
        var version = KedgeVersion.current
        var links = [
            "contract": "/openapi.yaml", "files": "/files", "health": "/healthz",
            "readiness": "/readyz", "sessions": "/uploads/sessions",
        ]
    }

    /// `GET /`: a page for people, JSON for programs.
    @Sendable func describe(_ request: Request, _ context: KedgeRequestContext) -> Response {
        let accept = request.headers[.accept]?.lowercased() ?? ""
        guard accept.contains("text/html") else {
            var response = Response.json(Description())
            response.headers[.vary] = "Accept"
            return response
        }
        return Response(
            status: .ok,
            headers: [
                .contentType: "text/html; charset=utf-8", .vary: "Accept",
                .contentSecurityPolicy: "default-src 'none'; style-src 'unsafe-inline'",
            ],
            body: ResponseBody(byteBuffer: ByteBuffer(string: Self.page)))
    }

    /// `GET /openapi.yaml`
    @Sendable func contract(_ request: Request, _ context: KedgeRequestContext) -> Response {
        let headers: HTTPFields = [.eTag: Self.contractETag, .cacheControl: "no-cache"]
        if let known = request.headers[.ifNoneMatch],
            EntityTags.ifNoneMatch(known, names: Self.contractETag)
        {
            return Response(status: .notModified, headers: headers)
        }
        var response = Response(
            status: .ok, headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(string: EmbeddedContract.text)))
        response.headers[.contentType] = "application/yaml"
        return response
    }

    private static let page = """
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Kedge</title>
        <style>
        body { font: 16px/1.5 system-ui, sans-serif; margin: 3em auto; max-width: 40em }
        code { background: #8882; padding: 0 .3em }
        </style>
        <h1>Kedge \(KedgeVersion.current)</h1>
        <p>This is a service for resumable uploads and downloads of large files.</p>
        <ul>
        <li>Send a file, with the address of this page:
        <code>kedge upload FILE --server ADDRESS</code>
        <li><a href="/openapi.yaml">The contract</a> of its HTTP interface (OpenAPI)
        <li><a href="/readyz">Its state, protocols and limits</a>
        <li><a href="/files">The files</a> and the
        <a href="/uploads/sessions">unfinished uploads</a>, as JSON
        </ul>
        </html>

        """
}
