internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeModel
internal import NIOCore

/// The rates of requests: of each owner, and of refused credentials from each client network.
///
/// They are counted in memory, so each node of a fleet has its own.
package struct RequestRates: Sendable {
    /// A kind of rate: the reason of the error, and the label of the metric.
    enum Kind: String {
        case requests
        case creates
        case authentication
    }

    /// Number of refused credentials that a network may have at once, in seconds of its rate. It
    /// leaves room for the clients of a whole office whose tokens expire together.
    private static let failureBurstSeconds = 5

    private let requests: RateTable<OwnerID>?
    private let creates: RateTable<OwnerID>?
    private let failures: RateTable<ClientAddress>?
    private let proxies: TrustedProxies

    /// No limits.
    package init() { self.init(RateSettings(), proxies: .none) }

    package init(_ settings: RateSettings, proxies: TrustedProxies) {
        let (requests, creates) = (settings.requestsPerSecond, settings.createsPerMinute)
        let failures = settings.failedAuthenticationsPerSecond
        self.requests = RequestRate(count: requests, per: .seconds(1), burst: requests)
            .map { RateTable($0) }
        self.creates = RequestRate(count: creates, per: .seconds(60), burst: creates)
            .map { RateTable($0) }
        self.failures = RequestRate(
            count: failures, per: .seconds(1), burst: failures * Self.failureBurstSeconds
        ).map { RateTable($0) }
        self.proxies = proxies
    }

    /// Counts a request of an owner.
    ///
    /// - Throws: `RATE_LIMITED`.
    func admit(_ owner: OwnerID, createsUpload: Bool) throws {
        if let wait = requests?.take(owner) {
            throw Self.error(.requests, "The owner makes too many requests.", wait)
        }
        if createsUpload, let wait = creates?.take(owner) {
            throw Self.error(.creates, "The owner begins too many uploads.", wait)
        }
    }

    /// Refuses a request from a network with too many refused credentials, before its own
    /// credential is looked up.
    ///
    /// - Throws: `RATE_LIMITED`.
    func admitCredential(
        _ request: Request, from peer: SocketAddress?, to local: SocketAddress?
    ) throws {
        guard let failures, let network = network(of: request, from: peer, to: local),
            let wait = failures.wait(for: network)
        else { return }
        throw Self.error(
            .authentication, "Too many wrong credentials came from the client's network.", wait)
    }

    /// Counts a refused credential.
    func noteRefusal(
        of request: Request, from peer: SocketAddress?, to local: SocketAddress?
    ) {
        guard let failures, let network = network(of: request, from: peer, to: local) else {
            return
        }
        failures.count(network)
    }

    /// The network that refused credentials count for; nil for none.
    private func network(
        of request: Request, from peer: SocketAddress?, to local: SocketAddress?
    ) -> ClientAddress? {
        let network = proxies.network(headers: request.headers, peer: peer)
        // A program on this machine may be a proxy for many clients, also at another address than
        // a loopback one.
        let isOwnMachine = peer?.ipAddress != nil && peer?.ipAddress == local?.ipAddress
        if isOwnMachine, network == proxies.network(headers: [:], peer: peer) { return nil }
        return network
    }

    private static func error(_ kind: Kind, _ sentence: String, _ wait: Duration) -> EngineError {
        var error = EngineError(.rateLimited, sentence)
        error.reason = kind.rawValue
        let parts = wait.components
        error.retryAfterSeconds = Int(clamping: parts.seconds) + (parts.attoseconds > 0 ? 1 : 0)
        return error
    }
}
