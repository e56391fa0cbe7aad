import KedgeIdentity
import KedgeModel
import Testing

struct PrincipalTests {
    private static let alice = OwnerID("alice")

    private static func principal(_ scopes: Set<Scope>) -> Principal {
        Principal(owner: alice, kind: .token, name: "backup", scopes: scopes)
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

    @Test func `the principal of a token has its owner`() {
        let token = APIToken.generate()
        let record = TokenRecord(
            id: token.id, secretDigest: token.secretDigest, owner: Self.alice,
            scopes: [.filesRead], name: "backup", createdBy: "admin",
            createdAt: Timestamp(millisecondsSinceEpoch: 1_800_000_000_000))
        let principal = Principal(record)
        #expect(principal.owner == Self.alice && principal.kind == .token)
        #expect(principal.tokenID == token.id && principal.scopes == [.filesRead])
        #expect(principal.name == "backup")
    }

    @Test func `each refusal has the code that clients see`() {
        #expect(AccessRefusal.unauthenticated.code == .unauthenticated)
        #expect(AccessRefusal.lacksScope(anyOf: [.admin]).code == .forbidden)
        #expect(AccessRefusal.lacksScope(anyOf: [.actAs]).sentence.contains("act-as"))
    }
}
