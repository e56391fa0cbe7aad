import KedgeModel
import Testing

struct OwnerIDTests {
    @Test(arguments: [
        "a", "alice", "oidc:login.example.com:8f3a", "Ann Smith", "~!@#$%^&*()", "../etc/passwd",
        String(repeating: "x", count: 255),
    ])
    func `printable ASCII text names an owner`(text: String) {
        #expect(OwnerID(checking: text)?.text == text)
    }

    @Test(arguments: [
        "", " ", " a", "a ", "a\tb", "a\nb", "a\u{0}", "a\u{7F}", "é", "а", "\u{202E}a",
        String(repeating: "x", count: 256),
    ])
    func `other text names no owner`(text: String) {
        #expect(OwnerID(checking: text) == nil)
    }

    @Test func `a part of a header field is checked by itself`() {
        #expect(OwnerID(checking: "bob, alice".dropFirst(5))?.text == "alice")
    }
}
