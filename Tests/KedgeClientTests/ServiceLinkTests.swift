import KedgeClient
import KedgeModel
import Testing

/// URLs with a link of the service.
struct ServiceLinkTests {
    private static let id = String(repeating: "ab", count: 16)
    private static let text = "kl1.k1.payload.code"

    static let targets: [(String, String, ServiceLink.Target)] = [
        ("https://x.test/files", "https://x.test", .newUpload),
        ("https://x.test/files/", "https://x.test", .newUpload),
        ("https://x.test/uploads/sessions", "https://x.test", .newUpload),
        ("https://x.test:8443/base/tus/", "https://x.test:8443/base", .newUpload),
        ("http://[::1]:8080/a/files", "http://[::1]:8080/a", .newUpload),
        ("https://x.test/own/uploads", "https://x.test/own/uploads", .newUpload),
        ("https://x.test", "https://x.test", .newUpload),
        (
            "https://x.test/b/uploads/sessions/\(id)", "https://x.test/b",
            .session(SessionID(wellFormed: id))
        ),
        (
            "https://x.test/uploads/resumable/\(id)", "https://x.test",
            .session(SessionID(wellFormed: id))
        ),
        ("https://x.test/tus/\(id)", "https://x.test", .session(SessionID(wellFormed: id))),
        ("https://x.test/files/\(id)", "https://x.test", .file(FileID(wellFormed: id))),
    ]

    @Test(arguments: targets)
    func `a link names its server and its target`(
        address: String, server: String, target: ServiceLink.Target
    ) throws {
        for url in ["\(address)?link=\(Self.text)", "\(address)?a=b&link=\(Self.text)#mark"] {
            let link = try #require(ServiceLink(url), "\(url)")
            #expect(link.serverURL == server)
            #expect(link.target == target)
            #expect(link.text == Self.text)
        }
    }

    @Test(arguments: [
        "https://x.test/files", "https://x.test/files?link=", "https://x.test/files?link=kdg_abc",
        "https://x.test/files?alink=kl1.a.b.c", "https://x.test/files#?link=kl1.a.b.c",
        "ftp://x.test/files?link=kl1.a.b.c", "kl1.a.b.c", "?link=kl1.a.b.c", "",
        "https://x.test/files?link=kl1.a.\u{1}b.c", "https://x.test/files?link=kl1.schlüssel",
        "https://x.test/files?link=kl1." + String(repeating: "a", count: 9000),
    ])
    func `any other text is no link`(text: String) {
        #expect(ServiceLink(text) == nil)
    }

    @Test(arguments: [
        ("https://x.test/tus/a?link=kl1.a.b.c", "https://x.test/tus/a"),
        ("https://x.test/tus/a?b=c&link=kl1.a.b.c&d", "https://x.test/tus/a?b=c&d"),
        ("https://x.test/tus/a?link=kl1.a.b.c#mark", "https://x.test/tus/a#mark"),
        ("https://x.test/tus/a?link=other", "https://x.test/tus/a?link=other"),
        ("https://x.test/tus/a", "https://x.test/tus/a"),
    ])
    func `only a link is removed from an address`(url: String, plain: String) {
        #expect(ServiceLink.removed(from: url) == plain)
    }
}
