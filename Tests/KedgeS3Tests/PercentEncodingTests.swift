import KedgeS3
import Testing

struct PercentEncodingTests {
    @Test(arguments: [
        ("a-b_c.d~e9", "a-b_c.d~e9"), ("a b/c+d=é", "a%20b%2Fc%2Bd%3D%C3%A9"), ("", ""),
        ("*'()!", "%2A%27%28%29%21"),
    ])
    func `all but unreserved characters are encoded, and decode again`(
        _ text: String, _ encoded: String
    ) {
        #expect(PercentEncoding.encode(text) == encoded)
        #expect(PercentEncoding.decode(encoded) == text)
    }

    @Test func `slashes of a path are kept`() {
        #expect(PercentEncoding.encode("a/b c", keepingSlashes: true) == "a/b%20c")
    }

    @Test(arguments: ["%", "%4", "%zz", "%ff", "a%4gb"])
    func `malformed percent-encoding is refused`(_ text: String) {
        #expect(PercentEncoding.decode(text) == nil)
    }
}
