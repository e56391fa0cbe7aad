import KedgeIdentity
import KedgeModel
import KedgeSecrets
import Testing

/// When a link is valid: its own times, and those of its key.
struct LinkValidityTests {
    private static let now = LinkFixture.now
    private let fixture: LinkFixture

    init() throws { fixture = try LinkFixture() }

    private static func time(_ milliseconds: Int) -> Timestamp {
        now.advanced(by: .milliseconds(milliseconds))
    }

    private func key(
        _ id: String, at createdAt: Int = 0, signsUntil: Timestamp? = nil,
        verifiesUntil: Timestamp? = nil
    ) -> LinkKey {
        LinkKey(
            id: id, master: fixture.master, createdAt: Self.time(createdAt),
            signsUntil: signsUntil, verifiesUntil: verifiesUntil)
    }

    private static func refusal(
        of text: String, at now: Timestamp, keys: [LinkKey]
    ) -> LinkRefusal? {
        do throws(LinkRefusal) {
            _ = try LinkSigner(keys: LinkKeys(keys)).verify(text, at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test func `a link is valid until the moment at which it expires`() throws {
        let grant = try LinkFixture.sessionLink().grant
        let link = LinkFixture.link(grant, expiresAt: Self.time(1000))
        let text = try fixture.signer.sign(link, at: Self.now)
        #expect(fixture.refusal(of: text, at: Self.time(999)) == nil)
        #expect(fixture.refusal(of: text, at: Self.time(1000)) == .expired)
    }

    @Test func `a link is valid from its first moment`() throws {
        let grant = try LinkFixture.sessionLink().grant
        let link = LinkFixture.link(grant, notBefore: Self.time(1000))
        let text = try fixture.signer.sign(link, at: Self.now)
        #expect(fixture.refusal(of: text, at: Self.time(999)) == .notYetValid)
        #expect(fixture.refusal(of: text, at: Self.time(1000)) == nil)
    }

    @Test func `an expired link with another code is invalid, not expired`() throws {
        let grant = try LinkFixture.sessionLink().grant
        let link = LinkFixture.link(grant, expiresAt: Self.time(-1000))
        let text = try fixture.signer.sign(link, at: Self.now)
        #expect(fixture.refusal(of: text) == .expired)
        #expect(fixture.refusal(of: String(text.dropLast()) + "!") == .invalid)
    }

    @Test func `a link that names another key is refused`() throws {
        let link = try LinkFixture.sessionLink()
        let text = try fixture.signer.sign(link, at: Self.now)
        let keys = [key("k1"), key("k2")]
        #expect(Self.refusal(of: text, at: Self.now, keys: keys) == nil)
        for id in ["k2", "k3", "", "K1", "k1 "] {
            let forged = text.replacing("kl1.k1.", with: "kl1.\(id).")
            #expect(Self.refusal(of: forged, at: Self.now, keys: keys) == .invalid)
        }
    }

    @Test func `a key of another master key verifies nothing`() throws {
        let text = try fixture.signer.sign(LinkFixture.sessionLink(), at: Self.now)
        let foreign = LinkKey(id: "k1", master: .generate(), createdAt: Self.now)
        #expect(Self.refusal(of: text, at: Self.now, keys: [foreign]) == .invalid)
    }

    @Test func `the newest key that signs is used`() throws {
        let keys = LinkKeys([
            key("new", at: 2), key("old", at: 1), key("ended", at: 3, signsUntil: Self.now),
        ])
        let signer = LinkSigner(keys: keys)
        let text = try signer.sign(LinkFixture.sessionLink(), at: Self.now)
        #expect(text.hasPrefix("kl1.new."))
        let before = try signer.sign(LinkFixture.sessionLink(), at: Self.time(-1))
        #expect(before.hasPrefix("kl1.ended."))
    }

    @Test func `links of a key that was rotated stay valid for its overlap`() throws {
        let text = try fixture.signer.sign(LinkFixture.sessionLink(), at: Self.now)
        let rotated = [
            key("k1", signsUntil: Self.time(1000), verifiesUntil: Self.time(5000)),
            key("k2", at: 1000),
        ]
        #expect(Self.refusal(of: text, at: Self.time(4999), keys: rotated) == nil)
        #expect(Self.refusal(of: text, at: Self.time(5000), keys: rotated) == .expired)
    }

    @Test func `links of a key that was revoked are invalid`() throws {
        let text = try fixture.signer.sign(LinkFixture.sessionLink(), at: Self.now)
        #expect(Self.refusal(of: text, at: Self.now, keys: [key("k2")]) == .invalid)
        #expect(Self.refusal(of: text, at: Self.now, keys: []) == .invalid)
    }

    @Test func `without a key that signs there are no links`() throws {
        let link = try LinkFixture.sessionLink()
        let ended = key("k1", signsUntil: Self.now)
        for keys in [[], [ended]] as [[LinkKey]] {
            #expect(throws: LinkSigningError.noKey) {
                try LinkSigner(keys: LinkKeys(keys)).sign(link, at: Self.now)
            }
        }
    }

    @Test func `ids of keys are letters and digits`() {
        #expect(LinkKey.isWellFormed("k1"))
        #expect(LinkKey.isWellFormed(LinkKey.randomID()))
        #expect(LinkKey.isWellFormed(String(repeating: "k", count: 32)))
        for id in ["", "k.1", "k 1", "k-1", "ключ", String(repeating: "k", count: 33)] {
            #expect(!LinkKey.isWellFormed(id))
        }
    }

    @Test func `each refusal has the code that clients see`() {
        #expect(LinkRefusal.invalid.code == .linkInvalid)
        #expect(LinkRefusal.notYetValid.code == .linkInvalid)
        #expect(LinkRefusal.expired.code == .linkExpired)
        #expect(Set(LinkRefusal.allCases.map(\.sentence)).count == LinkRefusal.allCases.count)
    }
}
