import KedgeIdentity
import KedgeServer
import Testing

/// The settings of the group `oidc`.
struct OpenIDSettingsTests {
    private func load(_ changes: [ConfigurationKey: String]) async throws -> OpenIDSettings? {
        var flags: [ConfigurationKey: String] = [
            .identityMode: "tokens", .oidcIssuers: "https://login.example",
            .oidcAudience: "kedge",
        ]
        flags.merge(changes) { $1 }
        let loader = try await ConfigurationLoader(flags: flags, environment: [:], file: nil)
        return try loader.configuration().openID
    }

    @Test func `issuer and audience are enough`() async throws {
        let settings = try #require(try await load([:]))
        #expect(settings.issuers.map(\.text) == ["https://login.example"])
        #expect(settings.audience == "kedge")
        #expect(settings.ownerClaim == nil)
        #expect(settings.scopeClaim == "scope")
        #expect(settings.defaultScopes.isEmpty)
        #expect(settings.adminClaim == nil)
    }

    @Test func `without issuers there is none`() async throws {
        #expect(try await load([.oidcIssuers: ""]) == nil)
    }

    @Test func `every setting is read`() async throws {
        let settings = try #require(
            try await load([
                .oidcIssuers: "https://a.example/x/, http://localhost:9400",
                .oidcOwnerClaim: "email", .oidcScopeClaim: "scp",
                .oidcDefaultScopes: "uploader,files:read", .oidcAdminClaim: "groups=admins",
            ]))
        #expect(settings.issuers.map(\.host) == ["a.example", "localhost"])
        #expect(settings.ownerClaim == "email")
        #expect(settings.scopeClaim == "scp")
        #expect(
            settings.defaultScopes == ScopeBundle.uploader.scopes.union([.filesRead]))
        #expect(settings.adminClaim == AdminClaim("groups=admins"))
    }

    @Test(
        arguments: [
            [.oidcAudience: ""], [.identityMode: "none"], [.oidcIssuers: "http://login.example"],
            [.oidcIssuers: "https://a.example,"], [.oidcIssuers: "login.example"],
            [.oidcIssuers: "https://a.example?x=1"],
            [.oidcIssuers: "https://a.example/x,https://a.example/y"],
            [.oidcDefaultScopes: "uploader,upload"], [.oidcAdminClaim: "groups"],
        ] as [[ConfigurationKey: String]])
    func `settings that would be unsafe are refused`(
        changes: [ConfigurationKey: String]
    ) async throws {
        await #expect(throws: ConfigurationError.self) { try await load(changes) }
    }
}
