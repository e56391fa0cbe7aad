internal import Foundation
package import HTTPTypes
internal import KedgeModel
internal import KedgeTransport

/// Describes requests to an upload server of any kind, and translates its refusals.
struct UploadEndpoint: Sendable {
    /// Exchange with the credentials for ``creationURL``.
    let exchange: ServerExchange

    /// URL at which uploads are created. Its user and password are not copied to other addresses.
    var creationURL: String { exchange.credentials.home }

    func call(
        _ operation: String, _ method: HTTPRequest.Method, _ url: String, fields: HTTPFields = [:]
    ) -> ServerCall {
        ServerCall(operation, method, url, redirects: .refused, fields: fields)
    }

    /// Sends a request and returns any answer except a redirect.
    ///
    /// - Throws: ``RequestFailure`` without an answer, and for a redirect.
    func reply(to call: ServerCall) async throws -> ServerMessage {
        try await exchange.reply(to: call, reading: .beginning)
    }

    /// Sends a request and throws any unsuccessful answer as a ``RequestFailure``.
    func success(of call: ServerCall) async throws -> ServerMessage {
        try await exchange.success(of: call, about: .upload, reading: .beginning)
    }

    /// Translates an unsuccessful answer.
    func failure(_ reply: ServerMessage, _ operation: String) -> RequestFailure {
        reply.failure(operation, .upload)
    }

    /// Returns the address of the upload in an answer, without user and password.
    ///
    /// - Throws: `PROTOCOL_VIOLATION` if there is none, or if it would downgrade the upload to an
    ///   unencrypted connection.
    func target(in reply: ServerMessage, _ operation: String) throws -> String {
        guard let address = LinkedAddress(reply.fields[.location], from: reply.head.url) else {
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
}

extension ReportedFile {
    /// Reads the digest and id of the finished file from an answer: `Repr-Digest`, or the fields of
    /// a Kedge server.
    ///
    /// The id counts only with a digest. Without one, it may not be the id of this file.
    init(_ reply: ServerMessage) {
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
