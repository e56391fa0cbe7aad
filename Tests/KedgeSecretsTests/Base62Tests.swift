import KedgeSecrets
import Testing

struct Base62Tests {
    @Test(
        arguments: [
            (0, "000000"), (9, "000009"), (10, "00000A"), (35, "00000Z"), (36, "00000a"),
            (61, "00000z"), (62, "000010"), (.max, "4gfFC3"),
        ] as [(UInt32, String)])
    func `a value has leading zeros`(value: UInt32, text: String) {
        #expect(Base62.encode(value, width: 6) == text)
    }

    @Test func `random texts are well formed, distinct and use every character`() {
        let texts = (0..<1000).map { _ in Base62.random(width: 12) }
        #expect(texts.allSatisfy { Base62.isWellFormed($0, width: 12) })
        #expect(Set(texts).count == texts.count)
        #expect(Set(texts.joined()).count == 62)
    }

    @Test(arguments: [
        "", "0123456789a", "0123456789abc", "0123456789a_", "0123456789aé", " 123456789ab",
    ])
    func `text of another length or with other characters is not well formed`(text: String) {
        #expect(!Base62.isWellFormed(text, width: 12))
    }
}
