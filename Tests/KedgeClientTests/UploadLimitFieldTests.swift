import KedgeClient
import Testing

struct UploadLimitFieldTests {
    @Test(
        arguments: [
            ("max-size=7, min-append-size=5;a=b", 7, nil, 5),
            ("max-append-size=9", nil, 9, nil),
            ("unknown, other=?1, max-size=1", 1, nil, nil), ("", nil, nil, nil),
            ("list=(1 2);a, date=@1 ,\tname=%\"%c3%a9\", max-size=1", 1, nil, nil),
            ("max-size=-0,min-append-size=999999999999999", 0, nil, 999_999_999_999_999),
            // The last member of a key counts, and a comma in a string separates nothing.
            ("max-size=a, max-size=7", 7, nil, nil),
            ("name=\"a, max-size=5, b\", max-append-size=9", nil, 9, nil),
        ] as [(String, Int64?, Int64?, Int64?)])
    func `the limits of Upload-Limit are read`(
        text: String, size: Int64?, most: Int64?, least: Int64?
    ) throws {
        let capabilities = try #require(UploadLimitField.parse(text))
        #expect(capabilities.maxSize == size)
        #expect(capabilities.maxAppendSize == most)
        #expect(capabilities.minAppendSize == least)
    }

    @Test(arguments: [
        "max-size=a", "max-size=1.5", "max-size", "min-append-size=5, max-size=\"7\"",
        "max-size=(7)", "max-size=@7", "max-size=-1", "max-size=7, max-size=a",
    ])
    func `a limit of the wrong type invalidates all of Upload-Limit`(text: String) {
        #expect(UploadLimitField.parse(text) == nil)
    }

    @Test(arguments: [
        "max-size = 7", "max-size=7,", ",max-size=7", "max-size=7,,other=1", "max-size=7 other=1",
        "max-size=7, Other=1", "max-size=7, other=", "max-size=7, other=\"a", "max-size=7;",
        "max-size=1 0", "max-size=1000000000000000", "max-size=9223372036854775807",
    ])
    func `a malformed dictionary invalidates all of Upload-Limit`(text: String) {
        #expect(UploadLimitField.parse(text) == nil)
    }

    @Test func `a missing Upload-Limit has no limits`() {
        #expect(UploadLimitField.parse(nil) == nil)
    }
}
