internal import HTTPTypes
internal import Hummingbird

/// Pages of which other origins may use the service (Fetch standard, section 3.2).
///
/// Never with credentials: a browser then sends no cookies, client certificates or passwords along, and the
/// page has no more rights than anybody who can reach the service.
package struct CORSPolicy: Hashable, Sendable {
    /// Pages of the service's own origin alone.
    package static let sameOrigin = CORSPolicy(origins: [], isOpen: false)
    /// Pages of every origin.
    package static let open = CORSPolicy(origins: [], isOpen: true)

    private let origins: Set<WebOrigin>
    /// True when every page is let in.
    let isOpen: Bool

    private init(origins: Set<WebOrigin>, isOpen: Bool) {
        self.origins = origins
        self.isOpen = isOpen
    }

    /// Reads origins such as `https://app.example`, separated by commas; `*` allows all. Nil for other text.
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

    /// True for an `Origin` that the settings name.
    func allows(_ origin: String) -> Bool {
        isOpen || WebOrigin(origin).map { origins.contains($0) } ?? false
    }

    /// True for an address of a page, as `Referer` has it, of an origin that the settings name.
    func allows(pageAt address: String) -> Bool {
        isOpen || WebOrigin(ofPageAt: address).map { origins.contains($0) } ?? false
    }

    /// The answer to a browser that asks whether its page may ask; nil for any other request.
    ///
    /// - Parameter methods: Those that the path takes.
    func preflight(_ request: Request, methods: @autoclosure () -> [String]) -> Response? {
        guard request.method == .options, request.headers[.accessControlRequestMethod] != nil,
            let origin = request.headers[.origin], allows(origin)
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

    /// Lets the page read the answer, an error just as a success.
    func complete(_ response: inout Response, to request: Request) {
        guard isOpen || !origins.isEmpty else { return }
        if !isOpen {
            // The answer to another page has another field.
            response.headers.append(HTTPField(name: .vary, value: "Origin"))
        }
        guard let origin = request.headers[.origin], allows(origin) else { return }
        response.headers[.accessControlAllowOrigin] = isOpen ? "*" : origin
        response.headers[.accessControlExposeHeaders] = Self.answerFields
    }

    /// What pages may send, in every dialect.
    private static let requestFields = [
        "Authorization", "Content-Type", "Content-Disposition", "Content-Range", "Content-Digest",
        "Repr-Digest", "X-Chunk-Hash", "Idempotency-Key", "Range", "If-Range", "If-Match",
        "If-None-Match", "Tus-Resumable", "Upload-Length", "Upload-Defer-Length", "Upload-Offset",
        "Upload-Metadata", "Upload-Checksum", "Upload-Concat", "X-HTTP-Method-Override",
        "Upload-Complete", "Upload-Incomplete", "Upload-Draft-Interop-Version", "X-Request-Id",
        "X-Requested-With",
    ].joined(separator: ", ")

    /// What pages may read, in every dialect.
    private static let answerFields = [
        "Location", "Content-Location", "ETag", "Accept-Ranges", "Accept-Patch", "Allow",
        "Content-Range", "Content-Disposition", "Repr-Digest", "Retry-After", "X-Request-Id",
        "Tus-Resumable", "Tus-Version", "Tus-Extension",
        "Tus-Max-Size", "Tus-Checksum-Algorithm", "Upload-Length", "Upload-Defer-Length",
        "Upload-Offset", "Upload-Metadata", "Upload-Expires", "Upload-Concat", "Upload-Complete",
        "Upload-Incomplete", "Upload-Limit", "Upload-Draft-Interop-Version",
    ].joined(separator: ", ")
}
