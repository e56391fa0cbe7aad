internal import HTTPTypes
internal import Hummingbird

/// The other origins whose pages may use the service (Fetch standard, section 3.2).
///
/// Credentials are never allowed. A browser then sends no cookies, client certificates or
/// passwords, and the page has no more rights than any other client.
package struct CORSPolicy: Hashable, Sendable {
    /// Only pages of the service's own origin.
    package static let sameOrigin = CORSPolicy(origins: [], isOpen: false)
    /// Pages of every origin.
    package static let open = CORSPolicy(origins: [], isOpen: true)

    private let origins: Set<WebOrigin>
    /// Whether pages of every origin are allowed.
    let isOpen: Bool

    private init(origins: Set<WebOrigin>, isOpen: Bool) {
        self.origins = origins
        self.isOpen = isOpen
    }

    /// Reads origins such as `https://app.example`, separated by commas; `*` allows all. Returns
    /// nil for other text.
    package init?(text: String) {
        let names = text.split(separator: ",").map { $0.filter { $0 != " " && $0 != "\t" } }
        if names == ["*"] {
            self = .open
            return
        }
        let origins = names.compactMap { WebOrigin($0) }
        guard origins.count == names.count else { return nil }
        self.init(origins: Set(origins), isOpen: false)
    }

    /// Whether the policy allows the value of `Origin`.
    func allows(_ origin: String) -> Bool {
        isOpen || WebOrigin(origin).map { origins.contains($0) } ?? false
    }

    /// Whether the policy allows the origin of a page address, as in `Referer`.
    func allows(pageAt address: String) -> Bool {
        isOpen || WebOrigin(ofPageAt: address).map { origins.contains($0) } ?? false
    }

    /// The response to a CORS preflight request; nil for any other request.
    ///
    /// - Parameters:
    ///   - permitsAll: Whether to permit every origin.
    ///   - methods: The methods of the path.
    func preflight(
        _ request: Request, permitsAll: Bool = false, methods: () -> [String]
    ) -> Response? {
        guard request.method == .options, request.headers[.accessControlRequestMethod] != nil,
            let origin = request.headers[.origin], permitsAll || allows(origin)
        else { return nil }
        let methods = methods()
        guard !methods.isEmpty else { return nil }
        return Response(
            status: .noContent,
            headers: [
                .accessControlAllowMethods: methods.joined(separator: ", "),
                .accessControlAllowHeaders: Self.requestFields,
                .accessControlMaxAge: "86400",
            ])
    }

    /// Lets the page read the response, including errors.
    ///
    /// - Parameter linkedOrigin: The value of `Origin` of a page that the request's link permits.
    func complete(_ response: inout Response, to request: Request, linkedOrigin: String? = nil) {
        guard isOpen || !origins.isEmpty || linkedOrigin != nil else { return }
        if !isOpen {
            // The response depends on the origin.
            response.headers.append(HTTPField(name: .vary, value: "Origin"))
        }
        guard let origin = request.headers[.origin], allows(origin) || linkedOrigin != nil else {
            return
        }
        response.headers[.accessControlAllowOrigin] = isOpen ? "*" : origin
        response.headers[.accessControlExposeHeaders] = Self.answerFields
    }

    /// Request fields that pages may send, for all protocols.
    private static let requestFields = [
        "Authorization", "Content-Type", "Content-Disposition", "Content-Range", "Content-Digest",
        "Repr-Digest", "X-Chunk-Hash", "Idempotency-Key", "Range", "If-Range", "If-Match",
        "If-None-Match", "Tus-Resumable", "Upload-Length", "Upload-Defer-Length", "Upload-Offset",
        "Upload-Metadata", "Upload-Checksum", "Upload-Concat", "X-HTTP-Method-Override",
        "Upload-Complete", "Upload-Incomplete", "Upload-Draft-Interop-Version", "X-Request-Id",
        "X-Requested-With", "Kedge-Owner",
    ].joined(separator: ", ")

    /// Response fields that pages may read, for all protocols.
    private static let answerFields = [
        "Location", "Content-Location", "ETag", "Accept-Ranges", "Accept-Patch", "Allow",
        "Content-Range", "Content-Disposition", "Repr-Digest", "Retry-After", "X-Request-Id",
        "WWW-Authenticate",
        "Tus-Resumable", "Tus-Version", "Tus-Extension",
        "Tus-Max-Size", "Tus-Checksum-Algorithm", "Upload-Length", "Upload-Defer-Length",
        "Upload-Offset", "Upload-Metadata", "Upload-Expires", "Upload-Concat", "Upload-Complete",
        "Upload-Incomplete", "Upload-Limit", "Upload-Draft-Interop-Version",
    ].joined(separator: ", ")
}
