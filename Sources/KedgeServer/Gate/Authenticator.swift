internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel
internal import NIOCore

/// Determines the principal of each request and checks its access to the route. Fails closed: a
/// request has a principal with the access of the route, or no handler runs.
package struct Authenticator: Sendable {
    private enum Source: Sendable {
        /// Every request gets the anonymous principal.
        case anonymous
        /// Every request needs a credential.
        case credentials(CredentialVerifier)
        /// The user at the other end of the Unix socket for operators decides, and no field of a
        /// request.
        case local
    }

    private let source: Source
    /// Nil where the store knows no owners.
    private let blocks: OwnerBlocks?
    private let rates: RequestRates
    private let onChecked: @Sendable (CheckedCredential) -> Void

    /// Requests over the Unix socket for operators.
    static let local = Authenticator(.local)

    /// Every request gets the anonymous principal.
    package init() { self.init(.anonymous) }

    /// Every request needs a credential; without a verifier, every request gets the anonymous
    /// principal.
    ///
    /// - Parameter onChecked: Called after each check of a credential.
    init(
        credentials: CredentialVerifier?, blocks: OwnerBlocks? = nil,
        rates: RequestRates = RequestRates(),
        onChecked: @escaping @Sendable (CheckedCredential) -> Void = { _ in }
    ) {
        self.init(
            credentials.map { .credentials($0) } ?? .anonymous, blocks: blocks, rates: rates,
            onChecked: onChecked)
    }

    private init(
        _ source: Source, blocks: OwnerBlocks? = nil, rates: RequestRates = RequestRates(),
        onChecked: @escaping @Sendable (CheckedCredential) -> Void = { _ in }
    ) {
        self.source = source
        self.blocks = blocks
        self.rates = rates
        self.onChecked = onChecked
    }

    /// Returns the principal of a request; nil for a public route, which ignores credentials.
    ///
    /// Runs before the body is read, so that a refused body is not sent, and never again while it
    /// arrives: a credential that expires meanwhile does not interrupt the upload.
    ///
    /// - Throws: `UNAUTHENTICATED`, `FORBIDDEN`, `LINK_INVALID`, `LINK_EXPIRED`, `BAD_REQUEST`,
    ///   `RATE_LIMITED`, `UNAVAILABLE`.
    func principal(
        of request: Request, for access: Access, _ context: KedgeRequestContext
    ) async throws -> Principal? {
        if case .credentials(let verifier) = source {
            try verifier.proxy?.refuseForeign(
                request, from: context.channel.remoteAddress, context.logger)
        }
        guard access != .public else {
            if let refusal = context.pageRefusal { throw refusal }
            return nil
        }
        let authenticated = try await authenticate(request, context)
        context.logMetadata.set(authenticated)
        try Self.requirePage(of: request, authenticated, context)
        let principal = try acting(authenticated, request, context)
        if let blocks, try await blocks.refuses(principal) {
            throw EngineError(.forbidden, "The owner is blocked.")
        }
        try context.with(principal).requireAccess(access)
        return principal
    }

    private func authenticate(
        _ request: Request, _ context: KedgeRequestContext
    ) async throws -> Principal {
        switch source {
        case .anonymous: return .anonymous
        case .local: return try await LocalPeer.principal(of: context.channel)
        case .credentials(let verifier):
            let peer = context.channel.remoteAddress
            let local = context.channel.localAddress
            try rates.admitCredential(request, from: peer, to: local)
            let start = ContinuousClock.now
            do {
                let principal = try await verifier.principal(of: request, context)
                report(principal.kind.rawValue, .accepted, since: start)
                return principal
            } catch {
                if RequestError.refusesCredential(error) {
                    rates.noteRefusal(of: request, from: peer, to: local)
                }
                let code = (error as? RequestError)?.reason ?? EngineError(translating: error).code
                report(
                    CredentialVerifier.kind(of: request),
                    code.facts.httpStatus ?? 500 < 500 ? .refused : .failed, since: start)
                throw error
            }
        }
    }

    private func report(
        _ kind: String, _ outcome: CheckedCredential.Outcome, since start: ContinuousClock.Instant
    ) {
        onChecked(
            CheckedCredential(
                kind: kind, outcome: outcome, duration: start.duration(to: .now)))
    }

    /// Refuses a page of another origin, unless the link permits it.
    private static func requirePage(
        of request: Request, _ principal: Principal, _ context: KedgeRequestContext
    ) throws {
        guard let refusal = context.pageRefusal else { return }
        guard let link = principal.link, LinkLookup.permits(link, pageOf: request) else {
            throw refusal
        }
        if let origin = request.headers[.origin] { context.linkedOrigin.set(origin) }
    }

    /// Returns the principal as it acts for the owner that the request names.
    ///
    /// - Throws: `BAD_REQUEST` for text that is no owner; `FORBIDDEN` without the scope `act-as`,
    ///   and without identities: the client means another owner than the anonymous one, and what
    ///   it stores must not end there.
    private func acting(
        _ principal: Principal, _ request: Request, _ context: KedgeRequestContext
    ) throws -> Principal {
        let values = request.headers[values: .kedgeOwner]
        guard let text = values.first else { return principal }
        guard values.count == 1, let owner = OwnerID(checking: text) else {
            throw EngineError(
                .badRequest,
                "Kedge-Owner must be one name of 1 to \(OwnerID.maxByteCount) printable ASCII "
                    + "characters.")
        }
        if case .anonymous = source {
            throw EngineError(.forbidden, "Without identities there is only one owner.")
        }
        do {
            let acting = try principal.acting(for: owner)
            context.logMetadata.set("acting.for", owner)
            return acting
        } catch {
            throw EngineError(error.code, error.sentence)
        }
    }
}
