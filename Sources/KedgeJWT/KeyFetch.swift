internal import Foundation
internal import HTTPTypes
internal import KedgeIdentity
internal import KedgeTransport

/// Fetches the keys of one issuer (OpenID Connect Discovery 1.0 section 4).
struct KeyFetch: Sendable {
    static let maxByteCount = 1 << 20
    /// Limit of each of the two requests.
    static let timeout: Duration = .seconds(5)

    let issuer: ProviderURL
    let transport: any HTTPTransport

    /// The result of a fetch.
    struct Result: Sendable {
        let keys: KeySet
        /// The time after which to fetch again.
        let lifetime: Duration
    }

    private struct Discovery: Decodable {
        let issuer: String
        let keyAddress: String

        enum CodingKeys: String, CodingKey {
            case issuer
            case keyAddress = "jwks_uri"
        }
    }

    /// - Throws: ``KeyFetchFailure``, `TransportError`, `DecodingError`; for the log only.
    func run() async throws -> Result {
        let base = issuer.text.hasSuffix("/") ? String(issuer.text.dropLast()) : issuer.text
        let found = try await get(base + "/.well-known/openid-configuration").body
        let discovery = try JSONDecoder().decode(Discovery.self, from: Data(found))
        guard discovery.issuer.hasBytes(of: issuer.text) else {
            throw KeyFetchFailure("the discovery document names another issuer")
        }
        guard let address = ProviderURL(discovery.keyAddress),
            address.isEncrypted || !issuer.isEncrypted
        else { throw KeyFetchFailure("jwks_uri is not an https address") }
        let answer = try await get(address.text)
        let published = try JSONDecoder().decode(PublishedKeys.self, from: Data(answer.body))
        let keys = await KeySet(published)
        // An empty document is a mistake rather than the end of all keys.
        guard !keys.isEmpty else { throw KeyFetchFailure("the issuer lists no usable key") }
        return Result(
            keys: keys, lifetime: CacheLifetime.read(answer.fields[.cacheControl] ?? ""))
    }

    /// The transport follows no redirect, so an answer comes from the address that was asked.
    private func get(_ url: String) async throws -> (body: [UInt8], fields: HTTPFields) {
        var request = TransportRequest(
            method: .get, url: url, headerFields: [.accept: "application/json"],
            stallTimeout: Self.timeout)
        request.timeout = Self.timeout
        let response = try await transport.send(request)
        guard response.status == 200 else {
            throw KeyFetchFailure("\(url) answered with status \(response.status)")
        }
        return (try await response.body.collect(upTo: Self.maxByteCount), response.headerFields)
    }
}

/// A reason why the keys of an issuer could not be used.
struct KeyFetchFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
