import KedgeIdentity
import KedgeModel
import KedgeTesting
import Testing

/// Claims of tokens whose signatures are right.
struct ClaimTests {
    private let environment: JWTEnvironment

    init() throws { environment = try JWTEnvironment() }

    @Test(
        arguments: [
            ("exp", -59, nil), ("exp", -61, BearerRefusal.expired),
            ("nbf", 59, nil), ("nbf", 61, .notYetValid),
            ("iat", 59, nil), ("iat", 61, .notYetValid),
        ] as [(String, Int64, BearerRefusal?)])
    func `clocks may differ by a minute`(
        name: String, seconds: Int64, refusal: BearerRefusal?
    ) async throws {
        let token = try await environment.token([name: environment.seconds(seconds)])
        if let refusal {
            await environment.expect(refusal, token)
        } else {
            _ = try await environment.principal(token)
        }
    }

    @Test func `a token without a time of expiry is refused`() async throws {
        let token = try await environment.token(["exp": nil])
        await environment.expect(.withoutExpiry, token)
    }

    @Test(arguments: ["exp", "nbf", "iat"])
    func `a time that is none is malformed`(name: String) async throws {
        for value in ["\"1700003600\"", "-1", "1700003600000", "true", "[]", "null"] {
            let token = try await environment.token([name: value])
            await environment.expect(.malformed, token, value)
        }
        let fraction = try await environment.token(["exp": environment.seconds(10) + ".5"])
        _ = try await environment.principal(fraction)
    }

    @Test func `the audience must be this service`() async throws {
        for value in [#""kedge""#, #"["kedge"]"#, #"["other","kedge"]"#] {
            let token = try await environment.token(["aud": value])
            _ = try await environment.principal(token)
        }
        for value in [
            #""other""#, #"["other","third"]"#, "[]", "1", "null", #"[["kedge"]]"#,
            #"["kedge",1]"#, #""kedge other""#, #""Kedge""#, "\"\u{212A}edge\"",
        ] {
            let token = try await environment.token(["aud": value])
            await environment.expect(.wrongAudience, token, value)
        }
        await environment.expect(.wrongAudience, try await environment.token(["aud": nil]))
    }

    @Test func `the issuer must be equal byte for byte`() async throws {
        let issuer = JWTEnvironment.issuer
        for value in [
            issuer + "/", issuer.uppercased(), "https://login.example", "", "https://evil.example",
        ] {
            let token = try await environment.token(["iss": TokenText.quoted(value)])
            await environment.expect(.unknownIssuer, token, value)
        }
        await environment.expect(.unknownIssuer, try await environment.token(["iss": nil]))
        #expect(environment.provider.asked.isEmpty)
    }

    @Test func `the owner is host and subject`() async throws {
        for subject in ["", "ends ", "\\u00e9", "\\n", String(repeating: "x", count: 300)] {
            let token = try await environment.token(["sub": TokenText.quoted(subject)])
            await environment.expect(.withoutOwner, token, subject)
        }
        for value: String? in [nil, "1", "null", #"["alice"]"#] {
            let token = try await environment.token(["sub": value])
            await environment.expect(.withoutOwner, token)
        }
    }

    @Test func `another claim may name the owner`() async throws {
        let environment = try JWTEnvironment { $0.ownerClaim = "name" }
        let token = try await environment.token(["name": #""team 7""#])
        #expect(try await environment.principal(token).owner.text == "team 7")
        for value: String? in [#""anonymous""#, "\"\"", nil] {
            let token = try await environment.token(["name": value])
            await environment.expect(.withoutOwner, token)
        }
    }

    @Test func `an e-mail address names the owner only if it is verified`() async throws {
        let environment = try JWTEnvironment { $0.ownerClaim = "email" }
        let email = #""alice@a.example""#
        let verified = try await environment.token(["email": email, "email_verified": "true"])
        #expect(try await environment.principal(verified).owner.text == "alice@a.example")
        for value: String? in [nil, "false", #""true""#, "1"] {
            let token = try await environment.token(["email": email, "email_verified": value])
            await environment.expect(.withoutOwner, token)
        }
    }

    @Test(
        arguments: [
            (#""uploads:write files:read""#, [.uploadsWrite, .filesRead]),
            (#"["uploads:write","files:read"]"#, [.uploadsWrite, .filesRead]),
            (#""openid profile reader""#, ScopeBundle.reader.scopes),
            (#""admin""#, ScopeBundle.admin.scopes),
            (#""openid""#, []), ("\"\"", []), ("1", []), (#""FILES:READ""#, []),
            (#""files:read,files:list""#, []),
        ] as [(String, Set<Scope>)])
    func `scopes are texts in the claim, others are ignored`(
        value: String, scopes: Set<Scope>
    ) async throws {
        let token = try await environment.token(["scope": value])
        #expect(try await environment.principal(token).scopes == scopes)
    }

    @Test func `a token that names no scope gets the default ones`() async throws {
        let environment = try JWTEnvironment {
            $0.scopeClaim = "scp"
            $0.defaultScopes = [.filesRead]
        }
        let without = try await environment.token(["scope": #""admin""#])
        #expect(try await environment.principal(without).scopes == [.filesRead])
        let with = try await environment.token(["scp": #"["files:list"]"#])
        #expect(try await environment.principal(with).scopes == [.filesList])
    }

    @Test func `the admin claim gives every scope`() async throws {
        let environment = try JWTEnvironment {
            $0.adminClaim = AdminClaim("groups=kedge-admins")
        }
        for value in [#""kedge-admins""#, #"["staff","kedge-admins"]"#] {
            let token = try await environment.token(["groups": value])
            #expect(
                try await environment.principal(token).scopes == ScopeBundle.admin.scopes)
        }
        for value in [#""kedge-admins staff""#, #"["kedge"]"#, "true"] {
            let token = try await environment.token(["groups": value])
            #expect(
                try await environment.principal(token).scopes == ScopeBundle.uploader.scopes)
        }
    }

    @Test func `a token expires at its time, also when it was verified before`() async throws {
        let token = try await environment.token(["exp": environment.seconds(10)])
        _ = try await environment.principal(token)
        environment.clock.advance(by: .seconds(69))
        _ = try await environment.principal(token)
        environment.clock.advance(by: .seconds(1))
        await environment.expect(.expired, token)
    }
}
