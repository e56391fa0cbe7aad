import KedgeIdentity
import KedgeModel
import Testing

/// Addresses of OpenID providers, and the settings of their claims.
struct OpenIDTests {
    @Test(arguments: [
        ("https://login.example", "login.example"),
        ("https://Login.Example:8443/realms/a/", "login.example"),
        ("HTTPS://login.example/", "login.example"),
        ("https://[2001:db8::1]/", "[2001:db8::1]"),
    ])
    func `an https address is one of a provider`(text: String, host: String) throws {
        let url = try #require(ProviderURL(text))
        #expect(url.text == text)
        #expect(url.host == host)
        #expect(url.isEncrypted)
        #expect(!url.hasQuery)
    }

    @Test(arguments: ["http://localhost:9400", "http://127.0.0.1:9400/x", "http://[::1]:9400"])
    func `http is accepted on loopback`(text: String) throws {
        let url = try #require(ProviderURL(text))
        #expect(!url.isEncrypted)
    }

    @Test(arguments: [
        "http://login.example", "http://127.0.0.1.example", "http://localhost.example",
        "http://127.0.0.1@login.example", "https://user:secret@login.example",
        "https://login.example/#x", "https://login.example/ x", "https://", "login.example", "",
        "ftp://login.example", "https://login.example/\u{E9}", "file:///etc/passwd",
    ])
    func `other addresses are refused`(text: String) {
        #expect(ProviderURL(text) == nil)
    }

    @Test func `a query is noticed`() throws {
        let url = try #require(ProviderURL("https://login.example/keys?p=1"))
        #expect(url.hasQuery)
    }

    @Test func `an admin claim has a name and a value`() throws {
        let claim = try #require(AdminClaim("groups=a=b"))
        #expect(claim.name == "groups")
        #expect(claim.value == "a=b")
        for text in ["", "groups", "groups=", "=a"] { #expect(AdminClaim(text) == nil) }
    }

    @Test func `only missing keys make a refusal temporary`() {
        for refusal in BearerRefusal.allCases {
            #expect(
                refusal.code == (refusal == .unavailable ? .unavailable : .unauthenticated))
            #expect(!refusal.sentence.isEmpty)
        }
    }
}
