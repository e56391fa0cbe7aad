import KedgeIdentity
import KedgeModel
import KedgeSecrets
import Testing

/// Payloads with the right code: only those that this version understands completely are links.
struct LinkPayloadTests {
    private static let common =
        #""exp":2000000000,"id":"00112233445566778899aabbccddeeff","o":"alice","v":1"#
    private static let sessionMembers = #""op":"session","s":"\#(LinkFixture.sessionText)""#
    private static let put = #""op":"put""#
    private static let get = #""op":"get","f":"\#(LinkFixture.sessionText)""#

    /// A complete payload.
    static let session = object(sessionMembers)

    private static let unknownMembers = [
        #""x":1"#, #""record":"a""#, #""maxRead":1"#, #""Max":1"#, #""maximum":null"#,
        #""x":{"y":[1]}"#, "\"\":1",
    ]

    /// Limits that do not belong to the kind, and would not be kept.
    private static let foreignMembers: [String] = [
        object("\(sessionMembers),\"max\":1"),
        object("\(put),\"s\":\"\(LinkFixture.sessionText)\""),
        object("\(put),\"disp\":\"inline\""),
        object("\(get),\"max\":1"),
        object("\(get),\"uses\":1"),
        object("\(get),\"name\":\"a\""),
    ]

    private static let noObjects: [String] = [
        "", " ", "null", "1", "[]", "{}", "{", "\"text\"", "\(session)x", "\(session)\(session)",
        String(repeating: "[", count: 2000), "{\(common)}",
    ]

    private static let wrongMembers: [String] = [
        object(#""op":"record","r":"a""#), object(#""op":"PUT""#), object(#""op":["put"]"#),
        object(#""op":"session""#), object(#""op":"get""#), object(#""op":"get","f":"x""#),
        object(#""op":"session","s":"../../etc""#),
        object(#""op":"put","max":-1"#), object(#""op":"put","min":-1"#),
        object(#""op":"put","size":-1"#), object(#""op":"put","uses":0"#),
        object(#""op":"put","uses":-1"#), object(#""op":"put","sessionLife":0"#),
        object(#""op":"put","max":"1""#), object(#""op":"put","max":1.5"#),
        object(#""op":"put","max":99999999999999999999"#),
        object(#""op":"put","types":"video/*""#), object(#""op":"put","sha256":"ab""#),
        object(#""op":"put","meta":{"a":1}"#), object("\(get),\"disp\":\"render\""),
        object("\(sessionMembers),\"nbf\":9223372036854775807"),
    ]

    private static let wrongCommonMembers: [String] = [
        changed("alice", to: ""), changed("alice", to: #"al\nice"#), changed("alice", to: "älice"),
        changed(#""v":1"#, to: #""v":2"#), changed(#""v":1"#, to: #""v":"1""#),
        changed("00112233", to: "0011223"), changed("2000000000", to: "9223372036854775807"),
        changed("2000000000", to: "-9223372036854775808"), changed(#""exp":2000000000,"#, to: ""),
    ]

    private let fixture: LinkFixture

    init() throws { fixture = try LinkFixture() }

    private static func object(_ members: String) -> String { "{\(common),\(members)}" }

    /// Returns the complete payload with a part of it replaced.
    private static func changed(_ part: String, to other: String) -> String {
        session.replacing(part, with: other)
    }

    private func expectInvalid(_ payload: String) {
        #expect(fixture.refusal(of: fixture.signed(payload)) == .invalid)
    }

    @Test func `payloads of each kind are read`() {
        #expect(fixture.refusal(of: fixture.signed(Self.session)) == nil)
        #expect(fixture.refusal(of: fixture.signed(Self.object(Self.put))) == nil)
        #expect(fixture.refusal(of: fixture.signed(Self.object(Self.get))) == nil)
    }

    @Test(arguments: unknownMembers)
    func `an unknown member refuses a link of each kind`(member: String) {
        for known in [Self.sessionMembers, Self.put, Self.get] {
            expectInvalid(Self.object("\(known),\(member)"))
        }
    }

    @Test(arguments: foreignMembers)
    func `a member of another kind of link is refused`(payload: String) {
        expectInvalid(payload)
    }

    @Test(arguments: noObjects)
    func `a payload that is no object of this form is refused`(payload: String) {
        expectInvalid(payload)
    }

    @Test(arguments: wrongMembers)
    func `a payload with a missing or wrong member is refused`(payload: String) {
        expectInvalid(payload)
    }

    @Test(arguments: wrongCommonMembers)
    func `a payload with a wrong version, owner, id or time is refused`(payload: String) {
        #expect(payload != Self.session)
        expectInvalid(payload)
    }

    @Test func `a payload in another encoding is refused`() {
        // With this length, the last character has two unused bits.
        var payload = Self.session
        while payload.utf8.count % 3 != 2 { payload += " " }
        let encoded = Base64URL.encode(Array(payload.utf8))
        #expect(fixture.refusal(of: fixture.signed(encoded: encoded)) == nil)
        for other in ["\(encoded)=", "\(encoded)\n", " \(encoded)", "\(encoded.dropLast())B"] {
            #expect(fixture.refusal(of: fixture.signed(encoded: other)) == .invalid)
        }
    }

    @Test func `another version of the text is refused`() {
        for version in ["kl2", "KL1", "", "kl1 "] {
            let text = fixture.signed(Self.session, version: version)
            #expect(fixture.refusal(of: text) == .invalid)
        }
    }
}
