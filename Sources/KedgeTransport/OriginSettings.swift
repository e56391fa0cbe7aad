/// Settings of the connections to one server. They apply to its origin only: the same scheme, host
/// and port.
public struct OriginSettings: Sendable, Hashable {
    /// PEM file of the certificate authorities to trust; nil for those of other servers.
    public var caFile: String?
    /// URL of the proxy, in place of the environment's; nil for that.
    public var proxy: String?
    /// Certificate to present; nil for none.
    public var clientCertificate: ClientCertificate?

    /// Creates settings.
    public init(
        caFile: String? = nil, proxy: String? = nil, clientCertificate: ClientCertificate? = nil
    ) {
        self.caFile = caFile
        self.proxy = proxy
        self.clientCertificate = clientCertificate
    }
}
