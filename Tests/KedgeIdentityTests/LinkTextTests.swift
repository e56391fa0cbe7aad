import KedgeIdentity
import KedgeModel
import Testing

/// The text of links: what reads back, and that no other text does.
@Suite(.timeLimit(.minutes(2))) struct LinkTextTests {
    private let fixture: LinkFixture

    init() throws { fixture = try LinkFixture() }

    private func expectToReadBack(_ link: Link) throws {
        let text = try fixture.signer.sign(link, at: LinkFixture.now)
        #expect(text.hasPrefix(LinkSigner.prefix))
        #expect(try fixture.signer.verify(text, at: LinkFixture.now) == link)
    }

    /// A link with each limit.
    private static func put() -> Link {
        var constraints = LinkConstraints()
        constraints.maxByteCount = 5_000_000_000
        constraints.minByteCount = 1
        constraints.byteCount = 7
        constraints.mediaTypes = ["video/*", "image/png"]
        constraints.fileExtensions = ["mp4"]
        constraints.fileName = "Übung \"1\".mp4"
        constraints.digest = SHA256Digest(bytes: [UInt8](repeating: 0xAB, count: 32))
        constraints.metadata = ["customer": "4711", "path": "in/4711"]
        constraints.uses = 3
        constraints.sessionLifetimeSeconds = 604_800
        constraints.origins = ["https://app.example.com"]
        constraints.networks = ["192.0.2.0/24", "2001:db8::/32"]
        return LinkFixture.link(.put(constraints), notBefore: LinkFixture.now)
    }

    private static func get() throws -> Link {
        var linked = LinkedFile(file: try #require(FileID(LinkFixture.sessionText)))
        linked.disposition = .inline
        linked.fileName = "film.mp4"
        linked.origins = ["https://app.example.com"]
        linked.networks = ["192.0.2.1"]
        return LinkFixture.link(.get(linked))
    }

    @Test func `each kind of link reads back with all that it says`() throws {
        try expectToReadBack(Self.put())
        try expectToReadBack(Self.get())
        try expectToReadBack(LinkFixture.sessionLink())
        var session = LinkedSession(session: try #require(SessionID(LinkFixture.sessionText)))
        session.origins = ["https://app.example.com"]
        session.networks = ["192.0.2.1"]
        let link = LinkFixture.link(.session(session))
        #expect(link.origins == session.origins && link.networks == session.networks)
        try expectToReadBack(link)
        try expectToReadBack(LinkFixture.link(.put(LinkConstraints())))
        let file = try #require(FileID(LinkFixture.sessionText))
        try expectToReadBack(LinkFixture.link(.get(LinkedFile(file: file))))
    }

    @Test func `a link keeps its times in whole seconds and the name of its creator`() throws {
        let link = Link(
            owner: OwnerID("alice"), grant: Self.put().grant,
            expiresAt: LinkFixture.now.advanced(by: .milliseconds(5999)),
            notBefore: LinkFixture.now.advanced(by: .milliseconds(-1)), createdBy: "0123456789ab")
        #expect(link.expiresAt == LinkFixture.now.advanced(by: .seconds(5)))
        #expect(link.notBefore == LinkFixture.now.advanced(by: .seconds(-1)))
        try expectToReadBack(link)
    }

    /// The text was made with Python's hmac and base64. A change would break links in use.
    @Test func `the form of a link never changes`() throws {
        let text =
            "kl1.k1.eyJleHAiOjIwMDAwMDAwMDAsImlkIjoiMDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmYi"
            + "LCJvIjoiYWxpY2UiLCJvcCI6InNlc3Npb24iLCJzIjoiMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlh"
            + "YmNkZWYiLCJ2IjoxfQ.tAyc2aKW7PsYdOxuomO5T_dD7ZuXuyVrih0i-GGGJh0"
        let link = try fixture.signer.verify(text, at: LinkFixture.now)
        #expect(link.id.text == "00112233445566778899aabbccddeeff")
        #expect(link.owner == OwnerID("alice"))
        let expected = try LinkFixture.sessionLink()
        #expect(link.grant == expected.grant)
        #expect(link.expiresAt == Timestamp(millisecondsSinceEpoch: 2_000_000_000_000))
        #expect(link.notBefore == nil && link.createdBy == nil)
        #expect(try fixture.signer.sign(link, at: LinkFixture.now) == text)
    }

    @Test func `no part of a link is a link`() throws {
        let text = try fixture.signer.sign(Self.put(), at: LinkFixture.now)
        for count in 0..<text.utf8.count {
            #expect(fixture.refusal(of: String(text.prefix(count))) == .invalid)
            #expect(fixture.refusal(of: String(text.suffix(count))) == .invalid)
        }
    }

    /// A link of the maximum size, and each of its bits.
    @Test func `a link with any flipped bit is refused`() throws {
        var constraints = LinkConstraints()
        constraints.metadata = ["note": String(repeating: "x", count: 1900)]
        let text = try fixture.signer.sign(
            LinkFixture.link(.put(constraints)), at: LinkFixture.now)
        #expect(fixture.refusal(of: text) == nil)
        var bytes = Array(text.utf8)
        #expect(bytes.count > 2500)
        var accepted: [String] = []
        for place in bytes.indices {
            for bit in 0..<8 {
                bytes[place] ^= 1 << bit
                let flipped = String(decoding: bytes, as: UTF8.self)
                if fixture.refusal(of: flipped) != .invalid { accepted.append(flipped) }
                bytes[place] ^= 1 << bit
            }
        }
        #expect(accepted.isEmpty)
    }

    @Test func `text around and between the parts of a link is refused`() throws {
        let text = try fixture.signer.sign(LinkFixture.sessionLink(), at: LinkFixture.now)
        for other in [
            "", ".", "...", "kl1...", " \(text)", "\(text) ", "\(text)\n", "\(text).", ".\(text)",
            "\(text)=", "\(text).x", text.uppercased(), text.replacing(".", with: ".."),
            "kdg_0123456789ab", "https://example.com/?link=\(text)",
        ] {
            #expect(fixture.refusal(of: other) == .invalid)
        }
    }

    @Test func `a payload that is too long is neither signed nor read`() throws {
        var constraints = LinkConstraints()
        constraints.metadata = ["note": String(repeating: "x", count: 2048)]
        #expect(throws: LinkSigningError.tooLong) {
            try fixture.signer.sign(LinkFixture.link(.put(constraints)), at: LinkFixture.now)
        }
        let json = LinkPayloadTests.session
        let longest = json + String(repeating: " ", count: 2048 - json.utf8.count)
        #expect(fixture.refusal(of: fixture.signed(longest)) == nil)
        #expect(fixture.refusal(of: fixture.signed(longest + " ")) == .invalid)
    }
}
