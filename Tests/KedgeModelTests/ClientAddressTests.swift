import KedgeModel
import Testing

struct ClientAddressTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("203.0.113.255", "203.0.113.255"),
        ("::ffff:192.0.2.7", "192.0.2.7"), ("::FFFF:c000:207", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("2001:DB8:0001:2::", "2001:db8:1:2::/64"),
        ("2001:db8::1", "2001:db8::/64"), ("2001:db8:0:0:1::", "2001:db8::/64"),
        ("::1", "::/64"), ("::", "::/64"), ("fe80::1%eth0", "fe80::/64"),
        ("2001:0:0:1::9", "2001:0:0:1::/64"), ("64:ff9b::192.0.2.33", "64:ff9b::/64"),
        ("1:2:3:4:5:6:192.0.2.1", "1:2:3:4::/64"),
    ])
    func `a client address yields its network`(text: String, network: String) throws {
        #expect(try #require(ClientAddress(text)).network == network)
    }

    @Test(arguments: [
        "", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.-4", "1.2.3.4:80", ":::",
        "::1::",
        "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "g::", "[::1]", "::1/64",
        "1:2:3:4:5:6:7::8",
        "1.2.3.4::", "::+1", "unknown", "_hidden",
    ])
    func `text that is no address is refused`(text: String) {
        #expect(ClientAddress(text) == nil)
    }
}
