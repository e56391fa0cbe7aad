import KedgeIdentity
import KedgeModel
import Testing

struct LinkConstraintsTests {
    private static let digest = SHA256Digest(bytes: [UInt8](repeating: 1, count: 32))

    private func constraints(_ change: (inout LinkConstraints) -> Void) -> LinkConstraints {
        var constraints = LinkConstraints()
        change(&constraints)
        return constraints
    }

    private func check(
        _ constraints: LinkConstraints, name: String? = "film.mp4", size: Int64? = 100,
        type: String? = "video/mp4", digest: SHA256Digest? = nil
    ) -> LinkViolation? {
        constraints.check(fileName: name, byteCount: size, mimeType: type, digest: digest)
    }

    @Test func `a link without limits permits each upload`() {
        let none = LinkConstraints()
        #expect(check(none) == nil)
        #expect(check(none, name: nil, size: nil, type: nil) == nil)
        #expect(check(none, size: .max, digest: Self.digest) == nil)
        #expect(none.byteCountLimit == nil)
    }

    @Test func `sizes at the limits are permitted, and others are not`() {
        let range = constraints {
            $0.minByteCount = 10
            $0.maxByteCount = 20
        }
        for (size, violation) in [(9, .tooSmall), (10, nil), (20, nil), (21, .tooLarge)]
            as [(Int64, LinkViolation?)]
        {
            #expect(check(range, size: size) == violation)
            #expect(range.checkSize(size) == violation)
        }
        let exact = constraints { $0.byteCount = 10 }
        #expect(check(exact, size: 9) == .wrongSize)
        #expect(check(exact, size: 10) == nil)
        #expect(check(exact, size: 11) == .wrongSize)
        #expect(check(constraints { $0.maxByteCount = 0 }, size: 1) == .tooLarge)
    }

    @Test func `an upload of unknown size gets the limit for its bytes`() {
        let both = constraints {
            $0.maxByteCount = 20
            $0.byteCount = 10
        }
        #expect(check(both, size: nil) == nil)
        #expect(both.byteCountLimit == 10)
        #expect(constraints { $0.maxByteCount = 20 }.byteCountLimit == 20)
        #expect(constraints { $0.minByteCount = 20 }.byteCountLimit == nil)
    }

    @Test(
        arguments: [
            ("video/mp4", true), ("VIDEO/MP4", true), ("video/webm; codecs=\"vp8\"", true),
            (" video/mp4 ;a=b", true), ("image/png", true), ("Image/PNG;x=y", true),
            ("image/svg+xml", false), ("video/", false), ("video", false), ("videos/mp4", false),
            ("xvideo/mp4", false), ("text/plain; x=video/mp4", false), ("", false),
            ("video\\mp4", false), ("image/pngx", false), ("image/png/x", false),
            // The sign for kelvin, whose lower case is k.
            ("text/markdown", true), ("text/mar\u{212A}down", false),
        ] as [(String, Bool)])
    func `a media type is permitted by itself or by its group`(type: String, isPermitted: Bool) {
        let limited = constraints { $0.mediaTypes = ["image/png", "Video/*", "text/Markdown"] }
        #expect(check(limited, type: type) == (isPermitted ? nil : .wrongMediaType))
    }

    @Test func `an upload without a media type breaks a limit on types`() {
        let all = constraints { $0.mediaTypes = ["*/*"] }
        #expect(check(all, type: nil) == .wrongMediaType)
        #expect(check(all, type: "application/x-anything") == nil)
        #expect(check(all, type: "anything") == .wrongMediaType)
    }

    @Test(
        arguments: [
            ("a.mp4", true), ("a.MP4", true), ("a.b.mp4", true), ("a.tar.gz", true),
            (".mp4", false), ("mp4", false), ("a.mp4x", false), ("a.mp4.exe", false),
            ("a.mp4 ", false), ("a.gz", false), ("amp4", false), ("a.", false),
        ] as [(String, Bool)])
    func `a file name needs a permitted extension`(name: String, isPermitted: Bool) {
        let limited = constraints { $0.fileExtensions = [".mp4", "TAR.gz"] }
        #expect(check(limited, name: name) == (isPermitted ? nil : .wrongExtension))
    }

    @Test func `an upload without a name gets that of the link`() {
        let named = constraints {
            $0.fileName = "film.mp4"
            $0.fileExtensions = ["mp4"]
        }
        #expect(check(named, name: nil) == nil)
        #expect(check(named, name: "film.mp4") == nil)
        #expect(check(named, name: "Film.mp4") == .wrongName)
        #expect(check(constraints { $0.fileExtensions = ["mp4"] }, name: nil) == .wrongExtension)
    }

    @Test func `names are compared by bytes`() {
        let composed = constraints { $0.fileName = "\u{E9}" }
        #expect(check(composed, name: "\u{E9}") == nil)
        #expect(check(composed, name: "e\u{301}") == .wrongName)
    }

    @Test func `a declared digest has to be that of the link`() {
        let limited = constraints { $0.digest = Self.digest }
        let other = SHA256Digest(bytes: [UInt8](repeating: 2, count: 32))
        #expect(check(limited, digest: nil) == nil)
        #expect(check(limited, digest: Self.digest) == nil)
        #expect(check(limited, digest: other) == .wrongDigest)
    }

    @Test func `a client cannot replace metadata of the link`() {
        let limited = constraints { $0.metadata = ["customer": "1", "path": "in"] }
        let merged = limited.mergedMetadata(over: ["customer": "2", "color": "red"])
        #expect(merged == ["customer": "1", "path": "in", "color": "red"])
    }

    @Test(arguments: LinkViolation.allCases)
    func `a violation has a code and a sentence`(violation: LinkViolation) {
        #expect(violation.code == (violation == .tooLarge ? .fileTooLarge : .forbidden))
        #expect(!violation.sentence.isEmpty)
    }
}
