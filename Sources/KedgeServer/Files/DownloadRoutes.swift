internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel
internal import NIOCore

/// `GET` and `HEAD /files/{fileId}`: bytes with ranges and conditions (RFC 9110).
struct DownloadRoutes: Sendable {
    let engine: TransferEngine

    @Sendable func get(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let file = try await engine.file(context.fileID(), owner: context.owner)
        return try await answer(request, file, context)
    }

    /// Serves the file as the request asks, for any path that leads to it.
    func answer(
        _ request: Request, _ file: FileRecord, _ context: KedgeRequestContext
    ) async throws -> Response {
        context.logMetadata.set("file.id", file.id)
        if let answer = try Self.conditional(request, file, context) { return answer }
        switch Self.ranges(of: request, file) {
        case .unsatisfiable:
            throw RequestError.rangeNotSatisfiable(fileSize: file.byteCount)
        case .whole:
            if let elsewhere = try await redirect(request, file, context) { return elsewhere }
            return try await whole(file, context)
        case .ranges(let ranges) where ranges.count == 1:
            return try await single(ranges[0], of: file, context)
        case .ranges(let ranges):
            return try await several(ranges, of: file, context)
        }
    }

    /// Responds with the headers of a `GET` without ranges, and no body.
    @Sendable func head(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Response {
        let file = try await engine.file(context.fileID(), owner: context.owner)
        if let answer = try Self.conditional(request, file, context) { return answer }
        var headers = Self.headers(of: file, context)
        headers[.contentLength] = String(file.byteCount)
        return Response(status: .ok, headers: headers)
    }

    /// Evaluates the conditions in the order of RFC 9110 section 13.2.2.
    ///
    /// - Throws: `PRECONDITION_FAILED`.
    private static func conditional(
        _ request: Request, _ file: FileRecord, _ context: KedgeRequestContext
    ) throws -> Response? {
        if let value = request.headers[.ifMatch], !EntityTags.ifMatch(value, allows: file.etag) {
            throw EngineError(.preconditionFailed)
        }
        if let value = request.headers[.ifNoneMatch],
            EntityTags.ifNoneMatch(value, names: file.etag)
        {
            return Response(status: .notModified, headers: Self.headers(of: file, context))
        }
        return nil
    }

    private static func ranges(of request: Request, _ file: FileRecord) -> RangeHeader {
        if let value = request.headers[.ifRange],
            !EntityTags.ifRange(value, names: file.etag)
        {
            return .whole
        }
        return RangeHeader(request.headers[.range], fileSize: file.byteCount)
    }

    /// Headers of a download. Uploaded content is untrusted: it is never sniffed, shown inline only
    /// where a link permits it, and sandboxed if a browser shows it nevertheless.
    private static func headers(of file: FileRecord, _ context: KedgeRequestContext) -> HTTPFields {
        let link = context.principal.link
        var headers: HTTPFields = [
            .eTag: file.etag,
            .acceptRanges: "bytes",
            .reprDigest: DigestHeader.rfc9530(file.digest),
            .contentType: file.mimeType ?? "application/octet-stream",
            .contentDisposition: disposition(of: file, link),
            .xContentTypeOptions: "nosniff",
            .contentSecurityPolicy: "sandbox; default-src 'none'; frame-ancestors 'none'",
            .cacheControl: "private, no-transform",
        ]
        if let link {
            // The address has the link.
            headers[.referrerPolicy] = "no-referrer"
            if !link.origins.isEmpty { headers[.crossOriginResourcePolicy] = "cross-origin" }
        }
        return headers
    }

    private static func disposition(of file: FileRecord, _ link: Link?) -> String {
        guard case .get(let linked)? = link?.grant else {
            return ContentDisposition.attachment(file.fileName)
        }
        let name = linked.fileName ?? file.fileName
        let isInline = linked.disposition == .inline && InlineTypes.contains(file.mimeType)
        return isInline ? ContentDisposition.inline(name) : ContentDisposition.attachment(name)
    }

    /// Redirects full downloads to a presigned URL if the store offers one. Requests with
    /// conditions or ranges are served here: the store has another entity tag, and a download that
    /// began with ours could not resume.
    ///
    /// A request by link is served here, too: the presigned URL could outlive the link, and knows
    /// nothing of its limits.
    private func redirect(
        _ request: Request, _ file: FileRecord, _ context: KedgeRequestContext
    ) async throws -> Response? {
        guard context.principal.link == nil else { return nil }
        let conditions: [HTTPField.Name] = [.range, .ifRange, .ifMatch, .ifNoneMatch]
        guard !conditions.contains(where: { request.headers[$0] != nil }) else { return nil }
        let headers = Self.headers(of: file, context)
        let names: [HTTPField.Name] = [.contentType, .contentDisposition, .cacheControl]
        let fields = names.compactMap { name in
            headers[name].map { (name.canonicalName, $0) }
        }
        guard
            let url = try await engine.publicURL(
                of: file, responseFields: Dictionary(uniqueKeysWithValues: fields))
        else { return nil }
        return Response(
            status: .temporaryRedirect,
            headers: [.location: url, .cacheControl: "private, no-store", .contentLength: "0"])
    }

    private func whole(_ file: FileRecord, _ context: KedgeRequestContext) async throws -> Response
    {
        let range = ByteRange(start: 0, end: file.byteCount)
        return Response(
            status: .ok, headers: Self.headers(of: file, context),
            body: try await body([.file(range)], of: file, context))
    }

    private func single(
        _ range: ByteRange, of file: FileRecord, _ context: KedgeRequestContext
    ) async throws -> Response {
        var headers = Self.headers(of: file, context)
        headers[.contentRange] = ContentRange(range: range, total: file.byteCount).description
        return Response(
            status: .partialContent, headers: headers,
            body: try await body([.file(range)], of: file, context))
    }

    /// Several ranges as `multipart/byteranges` (RFC 9110 section 14.6).
    private func several(
        _ ranges: [ByteRange], of file: FileRecord, _ context: KedgeRequestContext
    ) async throws -> Response {
        let boundary = "kedge-\(FileID.random())"
        var headers = Self.headers(of: file, context)
        let partType = headers[.contentType] ?? "application/octet-stream"
        headers[.contentType] = "multipart/byteranges; boundary=\(boundary)"
        var pieces: [FileBody.Piece] = []
        for range in ranges {
            let contentRange = ContentRange(range: range, total: file.byteCount)
            pieces.append(
                .text(
                    "\r\n--\(boundary)\r\nContent-Type: \(partType)\r\n"
                        + "Content-Range: \(contentRange)\r\n\r\n"))
            pieces.append(.file(range))
        }
        pieces.append(.text("\r\n--\(boundary)--\r\n"))
        return Response(
            status: .partialContent, headers: headers,
            body: try await body(pieces, of: file, context))
    }

    private func body(
        _ pieces: [FileBody.Piece], of file: FileRecord, _ context: KedgeRequestContext
    ) async throws -> ResponseBody {
        FileBody(
            try await engine.openFile(file), engine: engine, eventLoop: context.channel.eventLoop,
            sender: context.connection?.files, logger: context.logger
        ).responseBody(pieces)
    }
}
