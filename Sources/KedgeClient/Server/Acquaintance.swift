internal import KedgeModel

/// What is known of a server before it is asked: whether it ever answered, by the records.
enum Acquaintance: Sendable, Equatable {
    /// It answered before. Another answer that comes now in its place, such as the page of a captive
    /// portal in a train, passes: waiting helps.
    case known
    /// No Kedge has answered at this address yet: it may be the wrong one.
    case newKedge(String)
    /// A server of any other make, which has not answered yet.
    case new
}

extension RequestFailure {
    /// Statuses that something between the client and a Kedge answers by itself: they tell nothing of
    /// what is behind it.
    private static let statusesOfGateways: Set<Int> = [401, 403, 407, 408, 413, 425, 429]

    /// What the failure means of a server that has not answered yet, when waiting cannot help; nil when
    /// it may.
    func atFirstContact(with server: Acquaintance) -> RequestFailure? {
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
            "\(URLText.redacted(url)) answers with status \(status), and not as a Kedge server does;"
                + " check the address.")
    }
}
