internal import Foundation
internal import HTTPTypes
internal import KedgeModel

/// One exchange with a server of any make, and what a refusal means.
struct UploadEndpoint: Sendable {
    /// The way to the network, with the credentials for where uploads are begun.
    let sender: RequestSender

    /// Where uploads are begun. A user and password in it go into no other address.
    var creationURL: String { sender.home }

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
        let head: ServerReply
        /// The first bytes of it.
        let body: [UInt8]
        /// What was asked; addresses in the answer are relative to it.
        let url: String

        var status: Int { head.status }
        var fields: HTTPFields { head.headerFields }
        var isSuccess: Bool { (200...299).contains(status) }
        var answer: ServerAnswer { head.answer }
    }

    /// Sends a request.
    ///
    /// - Throws: ``RequestFailure`` without an answer, and for a redirect.
    func reply(to call: Call) async throws -> Reply {
        let request = TransportRequest(
            method: call.method, url: call.url, headerFields: call.fields, body: call.body,
            stallTimeout: call.isPatient ? Self.patientStallTimeout : nil,
            onBytesSent: call.onBytesSent)
        let reply = try await sender.send(
            request, operation: call.operation, redirects: .refused)
        return Reply(head: reply, body: try await collect(reply, call.operation), url: call.url)
    }

    /// The same for a request that must succeed.
    func success(of call: Call) async throws -> Reply {
        let reply = try await reply(to: call)
        guard reply.isSuccess else { throw failure(reply, call.operation) }
        return reply
    }

    /// What an answer means that is no success.
    func failure(_ reply: Reply, _ operation: String) -> RequestFailure {
        RequestFailure(reply.head, body: reply.body, operation: operation, subject: .upload)
    }

    /// The address in an answer (RFC 3986, section 5), without a fragment and without user and password.
    ///
    /// - Throws: `PROTOCOL_VIOLATION` for none, or one that would send bytes in clear that were to be
    ///   encrypted.
    func target(_ location: String?, from base: String, _ operation: String) throws -> String {
        guard let location, !location.isEmpty,
            let url = URLText.resolve(location, against: base)
        else { throw Self.violation(operation, "The server does not say where the upload is.") }
        guard URLText.isEncrypted(url) || !URLText.isEncrypted(base) else {
            throw Self.violation(
                operation, "The server sends the upload to an address without encryption.")
        }
        return URLText.withoutUserInfo(String(url.prefix { $0 != "#" }))
    }

    private static func violation(_ operation: String, _ explanation: String) -> TransferError {
        TransferError(.protocolViolation, operation: operation, explanation: explanation)
    }

    /// As much of the body as is of use. The head has said what counts: a body that breaks off, or is a
    /// whole file, changes nothing.
    private func collect(
        _ response: ServerReply, _ operation: String
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
