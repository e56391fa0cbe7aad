import KedgeIdentity
import KedgeModel
import Testing

struct LinkIDTests {
    private static let alice = OwnerID("alice")
    private static let bob = OwnerID("bob")

    @Test func `an identifier belongs to one owner`() {
        let id = LinkID.random(of: Self.alice)
        #expect(id.belongs(to: Self.alice))
        #expect(!id.belongs(to: Self.bob))
        #expect(!LinkID.random().belongs(to: Self.alice))
        #expect(LinkID(id.text) == id)
        #expect(LinkID.random(of: Self.alice) != LinkID.random(of: Self.alice))
    }

    @Test func `a link gets an identifier of its owner`() {
        let link = LinkFixture.link(.put(LinkConstraints()))
        #expect(link.id.belongs(to: link.owner))
    }

    @Test func `the link of a session has the same identifier each time`() throws {
        let session = try #require(SessionID(LinkFixture.sessionText))
        let id = LinkID(of: session, owner: Self.alice)
        #expect(id == LinkID(of: session, owner: Self.alice))
        #expect(id.belongs(to: Self.alice))
        #expect(id != LinkID(of: session, owner: Self.bob))
        #expect(id != LinkID(of: .random(), owner: Self.alice))
        #expect(LinkID.isWellFormed(id.text))
    }

    @Test func `a principal says who creates what it creates`() throws {
        let id = try #require(TokenID("0123456789ab"))
        let token = Principal(
            owner: Self.alice, kind: .token, name: "t", scopes: [.actAs], tokenID: id)
        #expect(token.creator == "token:0123456789ab")
        #expect(try token.acting(for: Self.bob).creator == "token:0123456789ab")
        let person = Principal(owner: Self.alice, kind: .oidc, name: "a", scopes: [.actAs])
        #expect(person.creator == "oidc:alice")
        #expect(try person.acting(for: Self.bob).creator == "oidc:alice")
        let link = Link(
            owner: Self.alice, grant: .put(LinkConstraints()), expiresAt: LinkFixture.now,
            createdBy: token.creator)
        #expect(Principal(link).creator == token.creator)
    }
}
