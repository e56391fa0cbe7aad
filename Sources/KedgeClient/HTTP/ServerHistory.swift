internal import KedgeModel
internal import KedgeTransport

/// The recorded history of a server: whether it has ever answered.
package enum ServerHistory: Sendable, Equatable {
    /// It has answered before. A foreign answer in its place, such as the page of a captive portal,
    /// is temporary: waiting helps.
    case known
    /// No Kedge server has answered at this address yet: the address may be wrong.
    case newKedge(String)
    /// A server of another kind, which has not answered yet.
    case new
}

extension RequestFailure {
    /// Statuses that an intermediary may send by itself, whatever the server behind it.
    private static let statusesOfGateways: Set<Int> = [401, 403, 407, 408, 413, 425, 429]

    /// Returns the failure to report for a server that has never answered, if waiting cannot help;
    /// nil if it may.
    func atFirstContact(with server: ServerHistory) -> RequestFailure? {
        switch transport?.connection?.cause {
        case .nameNotFound: return with(.nameNotFound, explanation)
        case .tlsRefused: return with(.tlsRefused, explanation)
        default: break
        }
        if code == .redirected { return self }
        guard case .newKedge(let url) = server, isForeign else { return nil }
        let status = answer?.status ?? 0
        let isOfGateway = Self.statusesOfGateways.contains(status)
        let isOfFailingGateway = status >= 500 && status != 501 && status != 505
        guard !isOfGateway, !isOfFailingGateway else { return nil }
        return with(
            .notKedge,
            speaksTus
                ? "\(URLText.redacted(url)) is the address of a tus server, not of a Kedge; upload"
                    + " with --protocol tus."
                : "\(URLText.redacted(url)) answers with status \(status), but not as a Kedge"
                    + " server; check the address.")
    }
}
