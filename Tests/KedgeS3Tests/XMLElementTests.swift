import KedgeS3
import Testing

struct XMLElementTests {
    private func read(_ text: String) -> XMLElement? { XMLElement(document: Array(text.utf8)) }

    @Test func `XML elements are found by name, whatever surrounds them`() throws {
        let root = try #require(
            read(
                """
                  \n<?xml version="1.0" encoding="UTF-8"?>
                <!-- first --><List xmlns="http://s3.amazonaws.com/doc/2006-03-01/" a='>'>
                <Key>a&amp;b &#233;&#xe9; &lt;&quot;</Key><Empty/><Key>second</Key>
                <Deep><Key>third</Key></Deep><!-- last --></List>

                """))
        #expect(root.name == "List")
        #expect(root.text(of: "Key") == "a&b éé <\"")
        #expect(root.all("Key").map(\.text) == ["a&b éé <\"", "second"])
        #expect(root.text(of: "Empty") == "")
        #expect(root.first("Deep")?.text(of: "Key") == "third")
        #expect(root.text(of: "Other") == nil)
    }

    @Test(arguments: [
        "", "text", "<a>", "<a></b>", "<a><b></a></b>", "<a>&unknown;</a>", "<a>&#xD800;</a>",
        "<a></a><b></b>", "<a b=\"></a>", "<!DOCTYPE a><a></a>", "<a>& </a>",
    ])
    func `XML that is not well-formed is rejected`(_ text: String) {
        #expect(read(text) == nil)
    }

    @Test func `the depth of XML is limited`() {
        let text = String(repeating: "<a>", count: 1000) + String(repeating: "</a>", count: 1000)
        #expect(read(text) == nil)
    }

    @Test func `escaped XML text reads back`() {
        let text = "\"<&>' é"
        #expect(read("<a>\(XMLElement.escape(text))</a>")?.text == text)
    }
}
