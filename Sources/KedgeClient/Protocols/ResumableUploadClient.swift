internal import HTTPTypes
internal import KedgeModel
internal import KedgeTransport

/// Client for IETF resumable uploads.
///
/// Creates the upload without bytes, so that it has a URL before its bytes move. A 104 response
/// would carry the URL earlier, but proxies drop it, so the client does not wait for one.
struct ResumableUploadClient: SequentialUploadClient {
    let endpoint: UploadEndpoint

    /// Statuses with which a server refuses an unknown version. 404 is included because the version
    /// may select the route.
    private static let refusals: Set<Int> = [400, 404, 405, 406, 412, 415, 422, 426, 501]

    /// Returns defaults: the limits arrive with the answer to ``create(_:)``, in its version.
    func discover() async throws -> ServerCapabilities { ServerCapabilities() }

    func create(_ description: UploadDescription) async throws -> CreatedUpload {
        var refusal: RequestFailure?
        for version in ResumableUploadVersion.candidates {
            let call = creation(description, version)
            let reply = try await endpoint.reply(to: call)
            guard Self.refusals.contains(reply.status) else {
                return try created(reply, version, call.operation)
            }
            // The refusal of the newest version is the most informative.
            refusal = refusal ?? endpoint.failure(reply, call.operation)
        }
        throw refusal ?? RequestFailure(.uploadVersionUnsupported, operation: "create upload")
    }

    private func creation(
        _ description: UploadDescription, _ version: ResumableUploadVersion
    ) -> ServerCall {
        var call = call("create upload", .post, endpoint.creationURL, version.interopVersion)
        call.fields.setCompleteness(false, version)
        if version.hasLengthAndLimits {
            call.fields[.uploadLength] = description.byteCount.map { String($0) }
        }
        call.fields[.contentType] = description.mimeType ?? "application/octet-stream"
        call.fields[.contentDisposition] = Self.disposition(description.fileName)
        call.fields[.reprDigest] = description.digest.map { DigestHeader.rfc9530($0) }
        call.body = .bytes([])
        call.mayTakeLong = true
        return call
    }

    /// - Throws: `UPLOAD_VERSION_UNSUPPORTED` for a success of a server without the protocol.
    private func created(
        _ reply: ServerMessage, _ version: ResumableUploadVersion, _ operation: String
    ) throws -> CreatedUpload {
        guard reply.isSuccess else { throw endpoint.failure(reply, operation) }
        let isComplete = version.isComplete(reply.fields[version.completenessName])
        guard isComplete != true, reply.fields[.location] != nil else {
            throw Self.unsupported(operation)
        }
        let url = try endpoint.target(in: reply, operation)
        let address = UploadAddress(url: url, interopVersion: version.interopVersion)
        // Some versions of the draft, and some servers, omit it here.
        guard isComplete != nil else { return CreatedUpload(address: address, state: nil) }
        return CreatedUpload(
            address: address, state: try state(reply, version, assuming: 0, operation))
    }

    /// Returns the error for a server without the protocol. Other versions are not tried, because
    /// each attempt could leave an empty file.
    static func unsupported(_ operation: String) -> TransferError {
        TransferError(
            .uploadVersionUnsupported, operation: operation,
            explanation: "The server does not support resumable uploads at this address;"
                + " it may have created an empty file.")
    }

    func state(of address: UploadAddress) async throws -> UploadState {
        let call = call("upload status", .head, address.url, address.interopVersion)
        let reply = try await endpoint.success(of: call)
        guard address.version.isComplete(reply.fields[address.version.completenessName]) != nil
        else {
            throw RequestFailure(
                .protocolViolation, operation: call.operation, answer: reply.answer)
        }
        return try state(reply, address.version, assuming: nil, call.operation)
    }

    func append(
        _ part: AppendBody, to address: UploadAddress,
        onBytesSent: @escaping @Sendable (Int64) -> Void
    ) async throws -> UploadState {
        let version = address.version
        var call = call("append", .patch, address.url, address.interopVersion)
        call.fields[.contentType] = version.appendMediaType
        call.fields[.uploadOffset] = String(part.range.start)
        call.fields.setCompleteness(part.isLast, version)
        if let checksum = part.checksum, let digest = SHA256Digest(bytes: checksum.bytes) {
            call.fields[.contentDigest] = DigestHeader.rfc9530(digest)
        }
        call.body = part.body
        call.mayTakeLong = part.isLast
        call.onBytesSent = onBytesSent
        let reply = try await endpoint.success(of: call)
        var state = try state(reply, version, assuming: part.range.end, call.operation)
        // The target resource, which need not know the protocol, answers the last request.
        if part.isLast, reply.fields[version.completenessName] == nil { state.isComplete = true }
        return state
    }

    func remove(_ address: UploadAddress) async throws {
        _ = try await endpoint.success(
            of: call("remove upload", .delete, address.url, address.interopVersion))
    }

    private func call(
        _ operation: String, _ method: HTTPRequest.Method, _ url: String,
        _ interopVersion: Int64?
    ) -> ServerCall {
        var call = endpoint.call(operation, method, url)
        call.fields[.interopVersion] = interopVersion.map { String($0) }
        return call
    }

    /// - Parameter offset: Assumed without `Upload-Offset`; nil if the field is required.
    private func state(
        _ reply: ServerMessage, _ version: ResumableUploadVersion, assuming offset: Int64?,
        _ operation: String
    ) throws -> UploadState {
        let reportedOffset = reply.fields[.uploadOffset].flatMap { WireInteger.parse($0) }
        guard let offset = reportedOffset ?? offset else {
            throw RequestFailure(.protocolViolation, operation: operation, answer: reply.answer)
        }
        return UploadState(
            offset: offset,
            isComplete: version.isComplete(reply.fields[version.completenessName]) ?? false,
            byteCount: reply.fields[.uploadLength].flatMap { WireInteger.parse($0) },
            capabilities: UploadLimitField.parse(reply.fields[.uploadLimit]),
            reportedFile: ReportedFile(reply), answer: reply.answer)
    }

    /// Returns a disposition with a plain ASCII name and the full name in UTF-8 (RFC 6266).
    private static func disposition(_ name: String) -> String {
        let plain = name.unicodeScalars.map { scalar in
            scalar.isASCII && scalar != "\"" && scalar != "\\" ? Character(scalar) : "_"
        }
        return "attachment; filename=\"\(String(plain))\"; "
            + "filename*=UTF-8''\(URLText.escapeQuery(name))"
    }
}

extension UploadAddress {
    /// The rules for the upload. A number that only a newer program knows has the newest ones.
    fileprivate var version: ResumableUploadVersion {
        interopVersion.flatMap(ResumableUploadVersion.init(interopVersion:)) ?? .final
    }
}

extension ResumableUploadVersion {
    fileprivate var completenessName: HTTPField.Name { .constant(completenessField) }
}

extension HTTPFields {
    fileprivate mutating func setCompleteness(
        _ isComplete: Bool, _ version: ResumableUploadVersion
    ) {
        self[version.completenessName] = version.value(isComplete: isComplete)
    }
}

extension HTTPField.Name {
    fileprivate static let interopVersion = constant("Upload-Draft-Interop-Version")
    fileprivate static let uploadLimit = constant("Upload-Limit")
}
