internal import HTTPTypes
internal import Hummingbird
internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel
internal import KedgeSecrets
internal import Logging
internal import NIOCore

/// The identities that trusted proxies state in a request field.
final class ProxyIdentity: Sendable {
    private let settings: ProxyIdentitySettings
    /// Nil if the address of the proxy is proof enough.
    private let secret: [UInt8]?
    private let proxies: TrustedProxies
    private let warning = WarningPace()

    init(_ settings: ProxyIdentitySettings, secret: [UInt8]?, proxies: TrustedProxies) {
        self.settings = settings
        self.secret = secret
        self.proxies = proxies
    }

    /// Refuses a request that states an identity and does not come from a trusted proxy, and one
    /// with several identities.
    ///
    /// Ignoring the field would hide a mistake: a proxy that is not listed, or a way around it.
    /// So it is refused on each route, and beside other credentials, too.
    ///
    /// - Throws: `BAD_REQUEST`.
    func refuseForeign(
        _ request: Request, from peer: SocketAddress?, _ logger: Logger
    ) throws {
        let count = request.headers[values: settings.field].count
        guard count > 0 else { return }
        let name = settings.field.rawName
        guard proxies.isTrusted(peer) else {
            if warning.isDue() {
                logger.warning(
                    "identity of an untrusted peer refused",
                    metadata: ["peer": "\(peer?.ipAddress ?? "unknown")", "field": "\(name)"])
            }
            throw EngineError(.badRequest, "\(name) is accepted only from a trusted proxy.")
        }
        guard count == 1 else {
            throw EngineError(.badRequest, "A request may have one \(name) field.")
        }
    }

    /// Returns the principal that a trusted proxy states; nil if it states none.
    ///
    /// ``refuseForeign(_:from:_:)`` comes before.
    ///
    /// - Throws: `UNAUTHENTICATED` without the secret, and for the anonymous owner; `BAD_REQUEST`
    ///   for text that is no owner.
    func principal(of request: Request) throws -> Principal? {
        guard let text = request.headers[settings.field] else { return nil }
        if let secret {
            let values = request.headers[values: .kedgeProxySecret]
            guard values.count == 1, ConstantTime.areEqual(Array(values[0].utf8), secret) else {
                throw RequestError.badCredential(
                    "The secret of the proxy is missing, repeated or wrong.")
            }
        }
        guard let owner = OwnerID(checking: text) else {
            throw EngineError(
                .badRequest,
                "\(settings.field.rawName) must have 1 to \(OwnerID.maxByteCount) printable ASCII "
                    + "characters.")
        }
        // A user who may choose a name must not get what was stored before there were owners.
        guard owner != .anonymous else {
            throw RequestError.badCredential(
                "\(settings.field.rawName) must not name the owner anonymous.")
        }
        return Principal(owner: owner, kind: .proxy, name: owner.text, scopes: settings.scopes)
    }
}
