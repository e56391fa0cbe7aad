internal import HTTPTypes
internal import KedgeHash
internal import KedgeModel
internal import KedgeTransport

/// Client for tus 1.0 (https://tus.io/protocols/resumable-upload) with the extension *creation*.
struct TusClient: SequentialUploadClient {
    static let version = "1.0.0"

    let endpoint: UploadEndpoint

    /// Requests the server's capabilities with `OPTIONS`. A server that does not support this
    /// request may still speak tus; if it does not, creating the upload fails.
    ///
    /// - Throws: `UPLOAD_VERSION_UNSUPPORTED` for a server with other versions only;
    ///   ``RequestFailure`` for an outage.
    func discover() async throws -> ServerCapabilities {
        let call = endpoint.call("ask for tus", .options, endpoint.creationURL)
        let reply = try await endpoint.reply(to: call)
        // No server answered: a retry may succeed.
        if [429, 502, 503, 504].contains(reply.status) {
            throw endpoint.failure(reply, call.operation)
        }
        guard reply.isSuccess else { return ServerCapabilities() }
        if let versions = reply.fields[.tusVersion], !Self.words(versions).contains(Self.version) {
            throw TransferError(
                .uploadVersionUnsupported, operation: call.operation,
                explanation: "The server does not support tus \(Self.version).")
        }
        let extensions = reply.fields[.tusExtension].map(Self.words)
        var capabilities = ServerCapabilities()
        // Some servers use 0 for no limit.
        capabilities.maxSize = reply.fields[.tusMaxSize].flatMap { WireInteger.parse($0) }
            .flatMap { $0 > 0 ? $0 : nil }
        if extensions?.contains("checksum") == true {
            let algorithms = Self.words(reply.fields[.tusChecksumAlgorithm] ?? "")
            capabilities.checksum = [.sha256, .sha1].first { algorithms.contains($0.rawValue) }
        }
        capabilities.offersRemoval = extensions?.contains("termination") ?? true
        return capabilities
    }

    func create(_ description: UploadDescription) async throws -> CreatedUpload {
        var call = call("create upload", .post, endpoint.creationURL)
        call.fields[.uploadLength] = description.byteCount.map { String($0) }
        call.fields[.uploadMetadata] = Self.metadata(description)
        call.body = .bytes([])
        call.mayTakeLong = true
        let reply = try await endpoint.success(of: call)
        let url = try endpoint.target(in: reply, call.operation)
        return CreatedUpload(
            address: UploadAddress(url: url, interopVersion: nil),
            state: try state(reply, size: description.byteCount, assuming: 0, call.operation))
    }

    func state(of address: UploadAddress) async throws -> UploadState {
        let call = call("upload status", .head, address.url)
        let reply = try await endpoint.success(of: call)
        let size = reply.fields[.uploadLength].flatMap { WireInteger.parse($0) }
        return try state(reply, size: size, assuming: nil, call.operation)
    }

    func append(
        _ part: AppendBody, to address: UploadAddress,
        onBytesSent: @escaping @Sendable (Int64) -> Void
    ) async throws -> UploadState {
        var call = call("append", .patch, address.url)
        call.fields[.contentType] = "application/offset+octet-stream"
        call.fields[.uploadOffset] = String(part.range.start)
        call.fields[.uploadChecksum] = part.checksum.map {
            "\($0.algorithm.rawValue) \(Base64.encode($0.bytes))"
        }
        call.body = part.body
        call.mayTakeLong = part.isLast
        call.onBytesSent = onBytesSent
        let reply = try await endpoint.success(of: call)
        var state = try state(reply, size: nil, assuming: nil, call.operation)
        state.isComplete = part.isLast && state.offset == part.range.end
        return state
    }

    func remove(_ address: UploadAddress) async throws {
        _ = try await endpoint.success(of: call("remove upload", .delete, address.url))
    }

    private func call(
        _ operation: String, _ method: HTTPRequest.Method, _ url: String
    ) -> ServerCall {
        endpoint.call(operation, method, url, fields: [.tusResumable: Self.version])
    }

    /// - Parameter offset: Assumed without `Upload-Offset`; nil if the field is required.
    private func state(
        _ reply: ServerMessage, size: Int64?, assuming offset: Int64?, _ operation: String
    ) throws -> UploadState {
        let reportedOffset = reply.fields[.uploadOffset].flatMap { WireInteger.parse($0) }
        guard let offset = reportedOffset ?? offset else {
            throw RequestFailure(.protocolViolation, operation: operation, answer: reply.answer)
        }
        return UploadState(
            offset: offset, isComplete: offset == size, byteCount: size,
            expiresAt: reply.fields[.uploadExpires].flatMap { Timestamp(httpDate: $0) },
            reportedFile: ReportedFile(reply), answer: reply.answer)
    }

    /// Returns name and type under the customary keys, then the user's metadata. Some servers
    /// require a type.
    private static func metadata(_ description: UploadDescription) -> String {
        let type = description.mimeType ?? "application/octet-stream"
        let own = description.metadata.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        return ([("filename", description.fileName), ("filetype", type)] + own)
            .map { "\($0) \(Base64.encode(Array($1.utf8)))" }.joined(separator: ",")
    }

    private static func words(_ list: String) -> [String] {
        list.split { $0 == "," || $0 == " " || $0 == "\t" }.map { $0.lowercased() }
    }
}

extension HTTPField.Name {
    fileprivate static let tusVersion = constant("Tus-Version")
    fileprivate static let tusExtension = constant("Tus-Extension")
    fileprivate static let tusMaxSize = constant("Tus-Max-Size")
    fileprivate static let tusChecksumAlgorithm = constant("Tus-Checksum-Algorithm")
    fileprivate static let uploadMetadata = constant("Upload-Metadata")
    fileprivate static let uploadChecksum = constant("Upload-Checksum")
    fileprivate static let uploadExpires = constant("Upload-Expires")
}
