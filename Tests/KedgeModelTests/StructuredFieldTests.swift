import KedgeModel
import Testing

/// Structured fields (RFC 9651), as far as uploads need them.
struct StructuredFieldTests {
    @Test(arguments: [("?1", true), ("?0", false), (" ?1 ", true), ("?1;a=1;b", true)])
    func `structured booleans are parsed`(text: String, value: Bool) {
        #expect(StructuredField.boolean(text) == value)
    }

    @Test(arguments: [
        "", "1", "true", "?2", "?", "?1, ?1", "?1 ?0", "?10", "\"?1\"", "?1;", "?1;A", "?1;a=",
        "\t?1",
    ])
    func `malformed booleans are rejected`(text: String) {
        #expect(StructuredField.boolean(text) == nil)
    }

    @Test(arguments: [("0", 0), ("007", 7), ("999999999999999", 999_999_999_999_999), ("5;a", 5)])
    func `structured counts are parsed`(text: String, value: Int64) {
        #expect(StructuredField.count(text) == value)
    }

    @Test(arguments: [
        "", "-1", "+1", "1.0", "1.", "1000000000000000", "99999999999999999999999", "1 2", "1,2",
        "0x10", "1e3", "one", "٣",
    ])
    func `malformed counts are rejected`(text: String) {
        #expect(StructuredField.count(text) == nil)
    }

    @Test func `a structured dictionary keeps the last member of each key`() {
        let text = "a=1, b;x=2 ,\tc=?0, d=\"q\\\"\\\\\", e=:AQI=:, f=*tok/en, g=-1.50, a=2"
        #expect(
            StructuredField.dictionary(text) == [
                "a": .integer(2), "b": .boolean(true), "c": .boolean(false), "d": .string("q\"\\"),
                "e": .bytes([1, 2]), "f": .token("*tok/en"), "g": .decimal("-1.50"),
            ])
        #expect(StructuredField.dictionary("") == [:])
    }

    @Test(arguments: [
        "a=1,", ",a=1", "A=1", "a=1 b=2", "a=", "a=:AQ:", "a=:AQI=", "a=\"x", "a=\"\\x\"",
        "a=\"\u{7F}\"", "a=(1 2)", "a=@1", "1=a", "a=1;", "a=1.2345", "a=1234567890123.1",
    ])
    func `malformed dictionaries are rejected`(text: String) {
        #expect(StructuredField.dictionary(text) == nil)
    }

    @Test(arguments: [
        "a=(1 2)", "a=()", "a=( )", "a=( \"b, c\";d=1  e );f", "a=@1", "a=@-1;b", "a=1;b=@1",
        "a=%\"b\"", "a=%\"%c3%a9\"", "a=(@1 %\"\")", "a=%\"\\\"",
    ])
    func `a reader that ignores unknown members accepts every type`(text: String) {
        #expect(StructuredField.dictionary(text) == nil)
        let members = StructuredField.dictionary("\(text), g=1", acceptsEveryType: true)
        #expect(members?.keys.sorted() == ["a", "g"])
        #expect(members?["g"] == .integer(1))
    }

    @Test(arguments: [
        "a=(", "a=(1", "a=(1,2)", "a=(1\t2)", "a=((1))", "a=(1)2", "a=1;b=(1)", "a=@", "a=@1.0",
        "a=@b", "a=%", "a=%b", "a=%\"", "a=%\"%c3\"", "a=%\"%C3%A9\"", "a=%\"%a\"", "a=%\"%\"",
        "a=%\"%zz\"", "a=%\"\u{E9}\"",
    ])
    func `malformed values of every type are rejected`(text: String) {
        #expect(StructuredField.dictionary(text, acceptsEveryType: true) == nil)
    }

    @Test func `a parameter of any type leaves a Boolean what it is`() {
        #expect(StructuredField.boolean("?1;a=@1", acceptsEveryType: true) == true)
        #expect(StructuredField.boolean("?1;a=@1") == nil)
        #expect(StructuredField.boolean("@1", acceptsEveryType: true) == nil)
    }
}
