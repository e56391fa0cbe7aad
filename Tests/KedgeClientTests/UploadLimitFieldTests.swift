import KedgeClient
import Testing

struct UploadLimitFieldTests {
    @Test(
        arguments: [
            ("max-size=7, min-append-size=5;a=b", 7, nil, 5),
            ("max-append-size = 9", nil, 9, nil),
            ("unknown, other=?1, max-size=1", 1, nil, nil), ("", nil, nil, nil),
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
    ])
    func `a limit of the wrong type voids all of Upload-Limit`(text: String) {
        #expect(UploadLimitField.parse(text) == nil)
    }
}
