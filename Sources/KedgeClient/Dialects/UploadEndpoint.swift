internal import Foundation
internal import HTTPTypes
internal import KedgeModel

/// One exchange with a server of any make: redirects, the token's reach, and what a refusal means.
struct UploadEndpoint: Sendable {
    /// Where uploads are begun. A user and password in it go to its origin and nowhere else, and into no
    /// other address.
    let creationURL: String
    /// Sent as bearer token to the origin of ``creationURL`` and nowhere else; never logged or stored.
    let token: String?
    let transport: any HTTPTransport

    /// Redirects of one request that are followed.
    private static let maxRedirectCount = 5
    /// Longest body of an answer that is looked at.
    private static let maxBodyByteCount = 64 << 10
    /// The last bytes may set the server to work; see ``ServerAPI``.
    private static let patientStallTimeout = Duration.seconds(120)

    /// A request, apart from what every request has.
    struct Call: Sendable {
        let operation: String
        let method: HTTPRequest.Method
        let url: String
        var fields: HTTPFields = [:]
        var body: TransportBody?
        /// True when the server may think for long before it answers.
        var isPatient = false
        var onBytesSent: (@Sendable (Int64) -> Void)?
    }

    /// Any answer that is no redirect.
    struct Reply: Sendable {
        let status: Int
        let fields: HTTPFields
        /// The first bytes of it.
        let body: [UInt8]
        /// What was asked in the end; addresses in the answer are relative to it.
        let url: String

        var isSuccess: Bool { (200...299).contains(status) }
        var answer: ServerAnswer {
            ServerAnswer(status: status, requestID: fields[.xRequestID])
        }
    }

    /// Sends, and goes where the server points.
    ///
    /// - Throws: ``RequestFailure`` without an answer; `PROTOCOL_VIOLATION` for redirects that lead nowhere
    ///   or out of an encrypted connection.
    func reply(to call: Call) async throws -> Reply {
        var url = call.url
        for _ in 0...Self.maxRedirectCount {
            let response = try await send(call, to: url)
            // Of these only 303 wants another method, which no request of ours can do with.
            guard [301, 302, 307, 308].contains(response.status) else {
                return Reply(
                    status: response.status, fields: response.headerFields,
                    body: try await collect(response, call.operation), url: url)
            }
            url = try target(response.headerFields[.location], from: url, call.operation)
        }
        throw Self.violation(call.operation, "The server redirects in circles.")
    }

    /// The same for a request that must succeed.
    func success(of call: Call) async throws -> Reply {
        let reply = try await reply(to: call)
        guard reply.isSuccess else { throw failure(reply, call.operation) }
        return reply
    }

    /// What an answer means that is no success.
    func failure(_ reply: Reply, _ operation: String) -> RequestFailure {
        RequestFailure(
            status: reply.status, headerFields: reply.fields, body: reply.body,
            operation: operation, subject: .upload)
    }

    /// The address in an answer (RFC 3986, section 5), without a fragment and without user and password.
    ///
    /// - Throws: `PROTOCOL_VIOLATION` for none, or one that would send bytes in clear that were to be
    ///   encrypted.
    func target(_ location: String?, from base: String, _ operation: String) throws -> String {
        guard let location, !location.isEmpty,
            let url = URLText.resolve(location, against: base)
        else { throw Self.violation(operation, "The server does not say where the upload is.") }
        guard url.lowercased().hasPrefix("https:") || !base.lowercased().hasPrefix("https:") else {
            throw Self.violation(
                operation, "The server sends the upload to an address without encryption.")
        }
        return URLText.withoutUserInfo(String(url.prefix { $0 != "#" }))
    }

    private static func violation(_ operation: String, _ explanation: String) -> TransferError {
        TransferError(.protocolViolation, operation: operation, explanation: explanation)
    }

    private func send(_ call: Call, to url: String) async throws -> TransportResponse {
        var (fields, target) = (call.fields, url)
        if URLText.origin(of: url) == URLText.origin(of: creationURL) {
            if let token { fields[.authorization] = "Bearer \(token)" }
            target = URLText.url(url, withUserInfoOf: creationURL)
        }
        let request = TransportRequest(
            method: call.method, url: target, headerFields: fields, body: call.body,
            stallTimeout: call.isPatient ? Self.patientStallTimeout : nil,
            onBytesSent: call.onBytesSent)
        do {
            return try await transport.send(request)
        } catch {
            throw RequestFailure(error, operation: call.operation)
        }
    }

    /// As much of the body as is of use. The head has said what counts: a body that breaks off, or is a
    /// whole file, changes nothing.
    private func collect(
        _ response: TransportResponse, _ operation: String
    ) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            while bytes.count < Self.maxBodyByteCount, let piece = try await response.body.next() {
                bytes += piece.prefix(Self.maxBodyByteCount - bytes.count)
            }
        } catch {
            if error.kind == .canceled { throw RequestFailure(error, operation: operation) }
        }
        return bytes
    }
}

extension UploadEvidence {
    /// What an answer tells of the finished file: `Repr-Digest`, and the rest as a Kedge server says it.
    ///
    /// An id counts only together with a digest: only then is it of the file that was sent.
    init(_ reply: UploadEndpoint.Reply) {
        // Servers of others answer with whatever they like; only ours says this.
        let message = try? JSONDecoder().decode(FinalizeResponse.self, from: Data(reply.body))
        digest =
            reply.fields[.reprDigest].flatMap { DigestHeader.parseRFC9530($0) }
            ?? message?.fileHashSha256
        guard digest != nil else { return }
        let path = reply.fields[.contentLocation]?.split(separator: "/").suffix(2)
        let named = path.flatMap { $0.first == "files" ? $0.last : nil }
        file = message?.remoteFileId ?? named.flatMap { FileID($0) }
    }
}

extension HTTPField.Name {
    static let uploadOffset = constant("Upload-Offset")
    static let uploadLength = constant("Upload-Length")
    static let contentDigest = constant("Content-Digest")
}
