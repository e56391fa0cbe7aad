import KedgeClient
import Testing

/// The proxy that libcurl takes from the environment.
struct EnvironmentProxyTests {
    static let named: [(String, [String: String], String?)] = [
        ("http://a.example", [:], nil),
        ("http://a.example", ["http_proxy": "http://p:3128"], "http_proxy"),
        ("http://a.example", ["HTTP_PROXY": "http://p:3128"], nil),
        ("https://a.example", ["http_proxy": "http://p:3128"], nil),
        ("https://a.example", ["HTTPS_PROXY": "http://p:3128"], "HTTPS_PROXY"),
        ("https://a.example", ["https_proxy": "", "ALL_PROXY": "socks5://p"], "ALL_PROXY"),
        ("http://a.example", ["http_proxy": "http://p", "no_proxy": "*"], nil),
        ("http://a.example", ["http_proxy": "http://p", "no_proxy": "b, .example"], nil),
        ("http://a.example", ["http_proxy": "http://p", "NO_PROXY": "a.example"], nil),
        ("http://a.example:81", ["http_proxy": "http://p", "no_proxy": "A.example"], nil),
        ("http://ba.example", ["http_proxy": "http://p", "no_proxy": "a.example"], "http_proxy"),
        ("no url", ["http_proxy": "http://p"], nil),
    ]

    @Test(arguments: named)
    func `the proxy variable of the scheme counts unless the host is exempt`(
        url: String, environment: [String: String], variable: String?
    ) {
        #expect(EnvironmentProxy.named(for: url, in: environment)?.variable == variable)
    }
}
