import HTTPTypes
import KedgeClient
import Testing

/// Which redirects are followed, and which addresses get the credentials.
struct RedirectPolicyTests {
    private static let plain = "http://kedge.test/files/1"
    private static let secure = "https://kedge.test/files/1"

    /// Policy, address that redirects, `Location`, decision and next address.
    static let redirects: [(RedirectPolicy, String, String?, RedirectTrail.Decision, String)] = [
        (.followedSecurely, plain, "/b#end", .follow, "http://kedge.test/b"),
        (.followedSecurely, plain, "http://other.test/b?c", .follow, "http://other.test/b?c"),
        (.followedSecurely, plain, "https://kedge.test/b", .follow, "https://kedge.test/b"),
        (.followedSecurely, secure, "https://other.test/b", .follow, "https://other.test/b"),
        (.followedSecurely, secure, "//other.test/b", .follow, "https://other.test/b"),
        (
            .followedSecurely, secure, "http://kedge.test/b",
            .refuse(.notEncrypted(target: "http://kedge.test/b")), secure
        ),
        (
            .followedSecurely, "HTTPS://kedge.test/", "http://other.test/b",
            .refuse(.notEncrypted(target: "http://other.test/b")), "HTTPS://kedge.test/"
        ),
        (.followedSecurely, plain, plain, .refuse(.endless(target: plain)), plain),
        (.followedSecurely, plain, "file:///etc/passwd", .refuse(.noTarget), plain),
        (.followedSecurely, plain, "", .refuse(.noTarget), plain),
        (.followedSecurely, plain, nil, .refuse(.noTarget), plain),
        (.refused, plain, secure, .refuse(.notFollowed(target: secure)), plain),
        (.refused, secure, plain, .refuse(.notFollowed(target: plain)), secure),
        (.refused, plain, nil, .refuse(.noTarget), plain),
        (.refusedAsForeign, plain, secure, .refuse(.notFollowed(target: secure)), plain),
        (.refusedAsForeign, plain, nil, .refuse(.noTarget), plain),
    ]

    @Test(arguments: redirects)
    func `a redirect is followed only as the policy says`(
        policy: RedirectPolicy, url: String, location: String?, expected: RedirectTrail.Decision,
        next: String
    ) {
        for status in [301, 302, 303, 307, 308] {
            var trail = RedirectTrail(policy, from: url)
            let decision = trail.decide(status: status, location: location)
            #expect(decision == expected)
            #expect(trail.url == next)
        }
    }

    @Test(arguments: RedirectPolicy.allCases, [200, 201, 206, 300, 304, 305, 400, 500])
    func `an answer with another status is no redirect`(policy: RedirectPolicy, status: Int) {
        var trail = RedirectTrail(policy, from: Self.plain)
        let decision = trail.decide(status: status, location: "/b")
        #expect(decision == .accept)
    }

    @Test func `five redirects are followed and the sixth is not`() {
        var trail = RedirectTrail(.followedSecurely, from: "http://kedge.test/0")
        for index in 1...5 {
            let decision = trail.decide(status: 302, location: "/\(index)")
            #expect(decision == .follow)
        }
        let last = trail.decide(status: 302, location: "/6")
        #expect(last == .refuse(.endless(target: "http://kedge.test/6")))
    }

    @Test func `redirects never step down from a connection that became encrypted`() {
        var trail = RedirectTrail(.followedSecurely, from: Self.plain)
        _ = trail.decide(status: 302, location: Self.secure)
        let decision = trail.decide(status: 302, location: "http://kedge.test/b")
        #expect(decision == .refuse(.notEncrypted(target: "http://kedge.test/b")))
    }

    @Test(
        arguments: [
            (.refused, 302, false), (.refused, 308, false), (.followedSecurely, 302, false),
            (.refusedAsForeign, 301, false), (.refusedAsForeign, 308, false),
            (.refusedAsForeign, 302, true), (.refusedAsForeign, 303, true),
            (.refusedAsForeign, 307, true),
        ] as [(RedirectPolicy, Int, Bool)])
    func `only a temporary redirect of a native call comes from an intermediary`(
        policy: RedirectPolicy, status: Int, expected: Bool
    ) {
        #expect(policy.isFromIntermediary(status: status) == expected)
    }

    @Test(
        arguments: [
            ("https://kedge.test/files/1", true), ("https://KEDGE.test:443/files/1", true),
            ("https://kedge.test", true), ("http://kedge.test/files/1", false),
            ("http://kedge.test:443/files/1", false), ("https://kedge.test:8443/", false),
            ("https://kedge.test.example/", false), ("https://sub.kedge.test/", false),
            ("https://kedge.test@other.test/", false), ("https://other.test/@kedge.test", false),
            ("no address", false),
        ] as [(String, Bool)])
    func `credentials go only to their own scheme, host and port`(url: String, expected: Bool) {
        let credentials = ServerCredentials(home: "https://user:word@kedge.test/x", token: "hush")
        let request = credentials.attached(to: TransportRequest(method: .get, url: url))
        #expect((request.headerFields[.authorization] == "Bearer hush") == expected)
        #expect(request.url.contains("user:word@") == expected)
        #expect(expected || request.url == url)
    }

    @Test func `a user and password in the address itself are kept`() {
        let credentials = ServerCredentials(home: "https://user:word@kedge.test", token: nil)
        let url = "https://other:one@kedge.test/files/1"
        let request = credentials.attached(to: TransportRequest(method: .get, url: url))
        #expect(request.url == url)
        #expect(request.headerFields[.authorization] == nil)
    }

    @Test(
        arguments: [
            ("http://[::1]:8080/b", true), ("http://[::1]:8081/b", false),
            ("http://[::2]:8080/b", false), ("http://[::1]/b", false),
        ])
    func `an IPv6 address is compared with its port`(url: String, expected: Bool) {
        let credentials = ServerCredentials(home: "http://[::1]:8080", token: "hush")
        let request = credentials.attached(to: TransportRequest(method: .get, url: url))
        #expect((request.headerFields[.authorization] == "Bearer hush") == expected)
    }

    @Test func `credentials for no address go nowhere`() {
        let credentials = ServerCredentials(home: "nowhere", token: "hush")
        let request = credentials.attached(to: TransportRequest(method: .get, url: "no address"))
        #expect(request.headerFields[.authorization] == nil)
    }
}
