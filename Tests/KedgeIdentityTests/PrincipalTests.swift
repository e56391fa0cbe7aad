import KedgeIdentity
import KedgeModel
import Testing

struct PrincipalTests {
    private static let alice = OwnerID("alice")

    private static func principal(_ scopes: Set<Scope>) -> Principal {
        Principal(owner: alice, kind: .token, name: "backup", scopes: scopes)
    }

    private static func link(_ kind: LinkKind) throws -> Principal {
        switch kind {
        case .put: return Principal(LinkFixture.link(.put(LinkConstraints())))
        case .session: return Principal(try LinkFixture.sessionLink())
        case .get:
            let file = try #require(FileID(LinkFixture.sessionText))
            return Principal(LinkFixture.link(.get(LinkedFile(file: file))))
        }
    }

    private static func refusal(of principal: Principal, by access: Access) -> AccessRefusal? {
        do throws(AccessRefusal) {
            try principal.require(access)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: Scope.allCases, Scope.allCases)
    func `a route with a scope is for principals with that scope`(
        needed: Scope, scope: Scope
    ) {
        let expected = needed == scope ? nil : AccessRefusal.lacksScope(anyOf: [needed])
        #expect(Self.refusal(of: Self.principal([scope]), by: .anyOf(needed)) == expected)
    }

    @Test func `one of several scopes is enough, and none is not`() {
        let access = Access.anyOf(.uploadsRead, .uploadsWrite)
        #expect(Self.refusal(of: Self.principal([.uploadsRead]), by: access) == nil)
        #expect(Self.refusal(of: Self.principal([.uploadsWrite]), by: access) == nil)
        let others = Set(Scope.allCases).subtracting([.uploadsRead, .uploadsWrite])
        for principal in [Self.principal(others), Self.principal([])] {
            #expect(
                Self.refusal(of: principal, by: access)
                    == .lacksScope(anyOf: [.uploadsRead, .uploadsWrite]))
        }
    }

    @Test(arguments: LinkKind.allCases, LinkKind.allCases)
    func `a link passes only where its kind is accepted`(kind: LinkKind, accepted: LinkKind) throws
    {
        let link = try Self.link(kind)
        let access = Access.anyOf(.admin, links: [accepted])
        let expected = kind == accepted ? nil : AccessRefusal.linkNotAccepted(kind)
        #expect(Self.refusal(of: link, by: access) == expected)
        #expect(Self.refusal(of: Self.principal([]), by: access) != nil)
    }

    @Test(arguments: LinkKind.allCases)
    func `a link passes no route that does not name its kind`(kind: LinkKind) throws {
        let link = try Self.link(kind)
        #expect(Self.refusal(of: link, by: .public) == nil)
        #expect(Self.refusal(of: link, by: .any) == .linkNotAccepted(kind))
        for scope in Scope.allCases {
            #expect(Self.refusal(of: link, by: .anyOf(scope)) == .linkNotAccepted(kind))
        }
        #expect(throws: AccessRefusal.linkNotAccepted(kind)) {
            try link.acting(for: OwnerID("bob"))
        }
    }

    @Test func `a principal without scopes passes only routes without scopes`() {
        #expect(Self.refusal(of: Self.principal([]), by: .public) == nil)
        #expect(Self.refusal(of: Self.principal([]), by: .any) == nil)
        #expect(Self.refusal(of: Self.principal([]), by: .anyOf()) == .lacksScope(anyOf: []))
        #expect(
            Self.refusal(of: Self.principal(Set(Scope.allCases)), by: .anyOf())
                == .lacksScope(anyOf: []))
    }

    @Test func `the anonymous principal has every scope but admin`() {
        for scope in Scope.allCases {
            let refusal = Self.refusal(of: .anonymous, by: .anyOf(scope))
            #expect((refusal == nil) == (scope != .admin))
        }
        #expect(Principal.anonymous.owner == .anonymous)
    }

    @Test func `a principal that acts for another owner keeps its scopes and its own owner`() throws
    {
        let bob = OwnerID("bob")
        let principal = try Self.principal([.actAs, .filesRead]).acting(for: bob)
        #expect(principal.owner == bob)
        #expect(principal.actingOwner == Self.alice)
        #expect(principal.scopes == [.actAs, .filesRead])
        #expect(principal.name == "backup")
        let carol = try principal.acting(for: OwnerID("carol"))
        #expect(carol.actingOwner == Self.alice)
        #expect(Self.principal([.actAs]).actingOwner == nil)
    }

    @Test func `acting for another owner needs its scope`() {
        let others = Set(Scope.allCases).subtracting([.actAs])
        #expect(throws: AccessRefusal.lacksScope(anyOf: [.actAs])) {
            try Self.principal(others).acting(for: OwnerID("bob"))
        }
    }

    @Test func `the principal of a token or link has its owner`() throws {
        let token = APIToken.generate()
        let record = TokenRecord(
            id: token.id, secretDigest: token.secretDigest, owner: Self.alice,
            scopes: [.filesRead], name: "backup", createdBy: "admin",
            createdAt: LinkFixture.now)
        let ofToken = Principal(record)
        #expect(ofToken.owner == Self.alice && ofToken.kind == .token)
        #expect(ofToken.tokenID == token.id && ofToken.scopes == [.filesRead])
        #expect(ofToken.name == "backup" && ofToken.link == nil)
        let link = try LinkFixture.sessionLink()
        let ofLink = Principal(link)
        #expect(ofLink.owner == Self.alice && ofLink.kind == .link)
        #expect(ofLink.link == link && ofLink.scopes.isEmpty && ofLink.tokenID == nil)
    }

    @Test func `each refusal has the code that clients see`() {
        #expect(AccessRefusal.unauthenticated.code == .unauthenticated)
        #expect(AccessRefusal.lacksScope(anyOf: [.admin]).code == .forbidden)
        #expect(AccessRefusal.linkNotAccepted(.get).code == .forbidden)
        #expect(AccessRefusal.lacksScope(anyOf: [.actAs]).sentence.contains("act-as"))
        #expect(AccessRefusal.linkNotAccepted(.get).sentence.contains("get"))
    }
}
