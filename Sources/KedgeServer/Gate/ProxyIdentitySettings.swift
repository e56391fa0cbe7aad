internal import HTTPTypes
package import KedgeIdentity

/// Settings of identities that a trusted proxy states.
package struct ProxyIdentitySettings: Sendable {
    /// The request field with the owner.
    let field: HTTPField.Name
    /// The file with the secret that proves the proxy; nil if its address is enough.
    let secretFile: String?
    /// The scopes of each such owner.
    let scopes: Set<Scope>

    /// Returns nil for a name that is no field, or a field with another meaning.
    package init?(header: String, secretFile: String? = nil, scopes: Set<Scope>) {
        guard let field = HTTPField.Name(header), !Self.otherFields.contains(field) else {
            return nil
        }
        self.field = field
        self.secretFile = secretFile
        self.scopes = scopes
    }

    private static let otherFields: Set<HTTPField.Name> = [
        .authorization, .cookie, .host, .kedgeOwner, .kedgeProxySecret, .xForwardedFor,
        .xRequestID,
    ]
}
