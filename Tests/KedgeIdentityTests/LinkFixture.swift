import KedgeIdentity
import KedgeModel
import KedgeSecrets
import Testing

/// A signer with a known key, and texts that are signed with it.
struct LinkFixture {
    static let now = Timestamp(millisecondsSinceEpoch: 1_800_000_000_000)
    static let sessionText = "0123456789abcdef0123456789abcdef"

    let master: MasterKey
    let signer: LinkSigner

    init() throws {
        master = try #require(MasterKey(text: "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"))
        signer = LinkSigner(
            keys: LinkKeys([LinkKey(id: "k1", master: master, createdAt: LinkFixture.now)]))
    }

    /// Returns a link that is valid for an hour.
    static func link(
        _ grant: LinkGrant, expiresAt: Timestamp = now.advanced(by: .seconds(3600)),
        notBefore: Timestamp? = nil
    ) -> Link {
        Link(owner: OwnerID("alice"), grant: grant, expiresAt: expiresAt, notBefore: notBefore)
    }

    static func sessionLink() throws -> Link {
        link(.session(LinkedSession(session: try #require(SessionID(sessionText)))))
    }

    /// Returns any payload with the code that a service with the master key would give it.
    func signed(_ payload: String, version: String = "kl1", keyID: String = "k1") -> String {
        signed(encoded: Base64URL.encode(Array(payload.utf8)), version: version, keyID: keyID)
    }

    func signed(encoded: String, version: String = "kl1", keyID: String = "k1") -> String {
        let text = "\(version).\(keyID).\(encoded)"
        let hmac = HMACSHA256(key: master.derive("kedge link \(keyID)"))
        return "\(text).\(Base64URL.encode(hmac.code(of: Array(text.utf8))))"
    }

    /// Returns the reason why a text is refused; nil if it is a link.
    func refusal(of text: String, at now: Timestamp = LinkFixture.now) -> LinkRefusal? {
        do throws(LinkRefusal) {
            _ = try signer.verify(text, at: now)
            return nil
        } catch {
            return error
        }
    }
}
