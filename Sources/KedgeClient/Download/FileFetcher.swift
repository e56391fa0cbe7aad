internal import Foundation
internal import HTTPTypes
internal import KedgeModel

/// Requests the metadata of files, whole files and ranges. Follows redirects where that is safe.
struct FileFetcher: Sendable {
    /// The interface to the file's server; by its link for a file that a link names.
    let api: ServerAPI

    func inspect(_ reference: RemoteReference) async throws -> ServerAPI.Answered<RemoteFile> {
        switch reference {
        case .file(let id): try await inspectKedgeFile(id)
        case .url(let url):
            if let linked = reference.linkedFile {
                try await inspectKedgeFile(linked.id)
            } else {
                try await inspectURL(url)
            }
        }
    }

    /// Requests a file, or a range of the version that the validator names. A weak validator adds
    /// no condition.
    ///
    /// Returns the response whatever its status: the caller checks it before it reads the body.
    func get(
        _ url: String, range: ByteRange? = nil, validator: RangeValidator? = nil
    ) async throws -> ServerReply {
        // No coding: byte offsets must be those of the file itself.
        var fields: HTTPFields = [.acceptEncoding: "identity"]
        if let range { fields[.range] = "bytes=\(range.start)-\(range.end - 1)" }
        switch validator {
        case .tag(let tag):
            fields[.ifRange] = tag
            fields[.ifMatch] = tag
        case .date(let date):
            fields[.ifRange] = date
            fields[.ifUnmodifiedSince] = date
        case .weak, nil:
            break
        }
        return try await head("get file", .get, url, fields)
    }

    /// Returns the failure that a response stands for.
    func failure(
        of response: ServerReply, to reference: RemoteReference
    ) async -> RequestFailure {
        await response.failure("get file", reference.isURL ? .resource : .file)
    }

    func answer(of response: ServerReply) -> ServerAnswer { response.answer }

    /// Returns the failure of an answer with a content coding, which no request asks for; nil
    /// without a coding.
    func codingFailure(of response: ServerReply) -> RequestFailure? {
        guard !isIdentity(response.headerFields) else { return nil }
        let coding = response.headerFields[.contentEncoding] ?? ""
        return RequestFailure(
            .contentEncoded, operation: "get file", answer: response.answer,
            explanation:
                "The server sends the content coding \(coding.prefix(40)), which was not requested."
        )
    }

    private func inspectKedgeFile(
        _ id: FileID
    ) async throws -> ServerAPI.Answered<RemoteFile> {
        let answered = try await api.fileMeta(id)
        let meta = answered.value
        guard meta.size >= 0, meta.chunkSize > 0,
            meta.size / meta.chunkSize < Int64(ChunkLayout.maxChunkCount)
        else {
            throw RequestFailure(
                .protocolViolation, operation: "file meta", answer: answered.answer)
        }
        let layout = ChunkLayout(fileSize: meta.size, chunkSize: meta.chunkSize)
        let file = RemoteFile(
            url: api.fileURL(id), byteCount: meta.size,
            validator: RangeValidator([.eTag: meta.etag]), sha256: meta.sha256,
            acceptsRanges: true, chunkSize: meta.chunkSize,
            chunkDigests: try await chunkDigests(of: id, layout: layout),
            modified: meta.mtime.flatMap { FileTime($0) })
        return ServerAPI.Answered(value: file, answer: answered.answer)
    }

    /// Returns nil if the server offers no digests, or digests for another layout. The whole-file
    /// hash then decides.
    private func chunkDigests(of id: FileID, layout: ChunkLayout) async throws -> [SHA256Digest]? {
        let chunkCount = layout.chunkCount ?? 0
        guard chunkCount > 0 else { return nil }
        do {
            let chunks = try await api.fileChunks(id, chunkCount: chunkCount).value
            guard chunks.chunkSize == layout.chunkSize, chunks.sha256.count == chunkCount else {
                return nil
            }
            return chunks.sha256
        } catch var failure as RequestFailure {
            // A server may serve files without offering their chunk digests.
            let isUnknown = failure.answer?.status == 404
            if isUnknown || !failure.isRetryable && !failure.isCanceled { return nil }
            // The file's metadata came from a Kedge server.
            failure.isForeign = false
            throw failure
        }
    }

    private func inspectURL(_ url: String) async throws -> ServerAPI.Answered<RemoteFile> {
        let fields: HTTPFields = [.acceptEncoding: "identity"]
        let head = try await head("head file", .head, url, fields)
        var file = RemoteFile(url: url, acceptsRanges: false)
        if head.status == 200, isIdentity(head.headerFields) {
            read(head.headerFields, into: &file)
            file.byteCount = length(head.headerFields)
            let ranges = head.headerFields[.acceptRanges]?.lowercased()
            file.acceptsRanges = ranges == "bytes"
            if file.isResumable || ranges == "none" || file.byteCount == 0 {
                return ServerAPI.Answered(value: file, answer: answer(of: head))
            }
        } else if [408, 429].contains(head.status) || head.status >= 500 && head.status != 501 {
            throw await failure(of: head, to: .url(url))
        }
        // Servers that refuse HEAD, or do not announce ranges, may still serve one.
        return try await probe(url, knowing: file)
    }

    /// Requests the first byte, and reads the metadata from the head of the answer.
    ///
    /// - Parameter head: Metadata from HEAD. An answer with a range need not repeat all of it.
    private func probe(
        _ url: String, knowing head: RemoteFile
    ) async throws -> ServerAPI.Answered<RemoteFile> {
        let response = try await get(url, range: ByteRange(start: 0, end: 1))
        if [200, 206].contains(response.status), let failure = codingFailure(of: response) {
            throw failure
        }
        var file = RemoteFile(url: url, acceptsRanges: false)
        switch response.status {
        case 206:
            read(response.headerFields, into: &file)
            let range = response.headerFields[.contentRange].flatMap { ContentRange($0) }
            file.byteCount = range?.total
            file.acceptsRanges = range?.range == ByteRange(start: 0, end: 1)
            if file.validator == .weak(""), file.byteCount == head.byteCount {
                file.validator = head.validator
                file.sha256 = file.sha256 ?? head.sha256
                file.modified = file.modified ?? head.modified
            }
        case 200:
            read(response.headerFields, into: &file)
            file.byteCount = length(response.headerFields)
        case 416
        where response.headerFields[.contentRange].flatMap({ ContentRange($0) })?.total == 0:
            file.byteCount = 0
        default:
            throw await failure(of: response, to: .url(url))
        }
        return ServerAPI.Answered(value: file, answer: answer(of: response))
    }

    private func read(_ fields: HTTPFields, into file: inout RemoteFile) {
        file.validator = RangeValidator(fields)
        file.modified = RemoteFile.modified(fields)
        file.sha256 = fields[.reprDigest].flatMap { DigestHeader.parseRFC9530($0) }
    }

    private func length(_ fields: HTTPFields) -> Int64? {
        fields[.contentLength].flatMap { WireInteger.parse($0) }
    }

    private func isIdentity(_ fields: HTTPFields) -> Bool {
        (fields[.contentEncoding] ?? "identity").lowercased() == "identity"
    }

    private func head(
        _ operation: String, _ method: HTTPRequest.Method, _ url: String, _ fields: HTTPFields
    ) async throws -> ServerReply {
        try await api.exchange.head(
            of: ServerCall(operation, method, url, redirects: .followedSecurely, fields: fields))
    }
}
