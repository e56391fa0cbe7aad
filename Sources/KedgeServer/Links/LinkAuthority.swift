internal import KedgeEngine
internal import KedgeIdentity
internal import KedgeModel

/// Signs, verifies and revokes links for requests.
package struct LinkAuthority: Sendable {
    private let keys: SigningKeys
    private let now: @Sendable () -> Timestamp
    /// Maximum time for which a link is valid.
    let maxLifetime: Duration
    /// Largest value of the setting: a hundred years.
    static let longestLifetime = Duration.seconds(3_153_600_000)

    /// - Parameter now: The clock of the links.
    init(keys: SigningKeys, maxLifetime: Duration, now: @escaping @Sendable () -> Timestamp) {
        self.keys = keys
        self.maxLifetime = maxLifetime
        self.now = now
    }

    /// Returns the link of a text.
    ///
    /// - Throws: `LINK_INVALID`, `LINK_EXPIRED`; an error of the store.
    func verify(_ text: String) async throws -> Link {
        do {
            return try await keys.link(of: text)
        } catch let refusal as LinkRefusal {
            throw EngineError(refusal.code, refusal.sentence)
        }
    }

    /// Returns the text of a link.
    ///
    /// - Throws: `BAD_REQUEST` for a link that says too much; `UNAVAILABLE` without a key that
    ///   signs; an error of the store.
    func sign(_ link: Link) async throws -> String {
        let signer = try await keys.signer()
        do {
            return try signer.sign(link, at: now())
        } catch LinkSigningError.tooLong {
            throw EngineError(
                .badRequest,
                "The limits of the link are longer than \(LinkSigner.maxPayloadByteCount) bytes.")
        } catch LinkSigningError.noKey {
            throw EngineError(.unavailable, "The service has no key that signs links.")
        }
    }

    /// Revokes a link until a time, at which it has expired in any case.
    func revoke(_ id: LinkID, until time: Timestamp) async throws {
        try await keys.revoke(id, until: time)
    }

    /// Returns the end of a link that is made now and is valid for this time.
    func expiry(after lifetime: Duration) -> Timestamp { now().advanced(by: lifetime) }
}
