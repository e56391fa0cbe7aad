internal import Foundation
package import HTTPTypes
internal import KedgeModel
internal import KedgeTransport

/// Sends requests to an upload server of any kind, and translates its refusals.
struct UploadEndpoint: Sendable {
    /// Transport with the credentials for ``creationURL``.
    let sender: RequestSender

    /// URL at which uploads are created. Its user and password are not copied to other addresses.
    var creationURL: String { sender.credentials.home }

    /// Maximum size of a body that is read.
    private static let maxBodyByteCount = 64 << 10
    /// The server may process the whole file after its last bytes; see ``ServerAPI``.
    private static let longStallTimeout = Duration.seconds(120)

    /// Request without the fields that every request has.
    struct Call: Sendable {
        let operation: String
        let method: HTTPRequest.Method
        let url: String
        var fields: HTTPFields = [:]
        var body: TransportBody?
        /// True if the server may take long to answer.
        var mayTakeLong = false
        var onBytesSent: (@Sendable (Int64) -> Void)?
    }

    /// Any answer except a redirect.
    struct Reply: Sendable {
        let head: ServerReply
        /// First bytes of the body.
        let body: [UInt8]
        /// Requested URL, against which addresses in the answer are resolved.
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
            stallTimeout: call.mayTakeLong ? Self.longStallTimeout : nil,
            onBytesSent: call.onBytesSent)
        let reply = try await sender.send(
            request, operation: call.operation, redirects: .refused)
        return Reply(head: reply, body: try await collect(reply, call.operation), url: call.url)
    }

    /// Sends a request and throws any unsuccessful answer as a ``RequestFailure``.
    func success(of call: Call) async throws -> Reply {
        let reply = try await reply(to: call)
        guard reply.isSuccess else { throw failure(reply, call.operation) }
        return reply
    }

    /// Translates an unsuccessful answer.
    func failure(_ reply: Reply, _ operation: String) -> RequestFailure {
        RequestFailure(reply.head, body: reply.body, operation: operation, subject: .upload)
    }

    /// Returns the address in an answer, without user and password.
    ///
    /// - Throws: `PROTOCOL_VIOLATION` if there is none, or if it would downgrade the upload to an
    ///   unencrypted connection.
    func target(_ location: String?, from base: String, _ operation: String) throws -> String {
        guard let address = LinkedAddress(location, from: base) else {
            throw Self.violation(operation, "The server sent no address of the upload.")
        }
        guard !address.isDowngrade else {
            throw Self.violation(
                operation, "The server sent an unencrypted address of the upload.")
        }
        return URLText.withoutUserInfo(address.url)
    }

    private static func violation(_ operation: String, _ explanation: String) -> TransferError {
        TransferError(.protocolViolation, operation: operation, explanation: explanation)
    }

    /// Reads as much of the body as is useful. The head is authoritative, so a body that breaks off
    /// or is huge does not matter.
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

extension ReportedFile {
    /// Reads the digest and id of the finished file from an answer: `Repr-Digest`, or the fields of
    /// a Kedge server.
    ///
    /// The id counts only with a digest. Without one, it may not be the id of this file.
    init(_ reply: UploadEndpoint.Reply) {
        // Only a Kedge server sends this message; other servers may send anything.
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
    package static let uploadOffset = constant("Upload-Offset")
    package static let uploadLength = constant("Upload-Length")
    package static let contentDigest = constant("Content-Digest")
}
