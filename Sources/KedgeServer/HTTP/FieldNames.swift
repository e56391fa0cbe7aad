internal import HTTPTypes

extension HTTPField.Name {
    static let host = named("Host")
    static let xRequestID = named("X-Request-Id")
    static let xChunkHash = named("X-Chunk-Hash")
    static let contentDigest = named("Content-Digest")
    static let reprDigest = named("Repr-Digest")
    static let secFetchSite = named("Sec-Fetch-Site")
    static let secFetchMode = named("Sec-Fetch-Mode")
    static let xForwardedFor = named("X-Forwarded-For")
    static let xForwardedProto = named("X-Forwarded-Proto")
    static let xHTTPMethodOverride = named("X-HTTP-Method-Override")
    static let kedgeOwner = named("Kedge-Owner")
    static let kedgeProxySecret = named("X-Kedge-Proxy-Secret")
    static let idempotencyKey = named("Idempotency-Key")
    static let referrerPolicy = named("Referrer-Policy")

    private static func named(_ text: String) -> Self {
        guard let name = Self(text) else { preconditionFailure("\(text) is no field name") }
        return name
    }
}
