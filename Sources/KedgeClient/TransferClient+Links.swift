internal import KedgeModel

/// Transfers by links of the service.
extension TransferClient {
    /// Returns the interface to a transfer's server, with the credential that creates the transfer:
    /// its link, or else the token.
    func api(for record: TransferRecord) -> ServerAPI {
        let server = record.status.serverURL
        switch record {
        case .upload(let upload):
            guard let link = upload.link else { return api(of: server) }
            return api(of: server, byLink: link)
        case .download(let download):
            return api(for: download.reference, at: server)
        }
    }

    /// Returns the interface to the server of a file.
    func api(for reference: RemoteReference, at server: String) -> ServerAPI {
        guard let (link, _) = reference.linkedFile else { return api(of: server) }
        return api(of: link.serverURL, byLink: link.text)
    }

    private func api(of server: String, byLink text: String) -> ServerAPI {
        ServerAPI(baseURL: server, token: text, transport: api.exchange.transport)
    }

    /// Returns the server URL to record for a new upload.
    func server(for options: UploadOptions) -> String {
        guard let link = options.link else { return server(for: options.uploadProtocol) }
        return switch options.uploadProtocol {
        case .native: link.serverURL
        // The path of the tus endpoint is a setting of the service.
        case .tus: link.address == link.serverURL ? "\(link.address)/" : "\(link.serverURL)/tus/"
        case .resumableUpload: "\(link.serverURL)/files"
        }
    }

    /// Gives a new upload its link: that of the session which the link names, or one that creates
    /// sessions.
    func setLink(of upload: inout UploadTransfer, _ link: ServiceLink?) {
        guard let link else { return }
        if case .session = link.target {
            upload.sessionLink = link.text
        } else {
            upload.link = link.text
        }
    }

    /// - Throws: `USAGE` for a link that does not permit this upload.
    static func validate(_ link: ServiceLink?, _ options: UploadOptions) throws {
        guard let link else { return }
        let explanation: String
        switch link.target {
        case .newUpload:
            guard options.sessionID != nil else { return }
            explanation = "This link permits a new upload, not to resume a session."
        case .session(let id):
            let isSame = options.sessionID == nil || options.sessionID == id
            guard !isSame || options.uploadProtocol != .native else { return }
            explanation =
                isSame
                ? "Only the native protocol can resume a session."
                : "This link permits another session than the named one."
        case .file:
            explanation = "This link permits a download, not an upload."
        }
        throw TransferError(.usage, operation: "upload", explanation: explanation)
    }
}
