import KedgeModel
import KedgeTesting
import Testing

/// R47: traversal and control characters never get through.
struct FileNameTests {
    private static let good = [
        "a", "report.pdf", "über uns.txt", "日本語.txt", "👩‍👩‍👧.jpg", "...", "..a", ".hidden", " ",
        "a:b*c?\"<>|", "con", "-rf", "$(id)", "%2e%2e%2f", "שלום.txt",
        "דוח\u{200E}(1).pdf", "\u{200F}אב.txt", "می\u{200C}خواهم", "क्\u{200D}ष",
        String(repeating: "a", count: 255), String(repeating: "é", count: 127),
    ]

    private static let bad = [
        "", ".", "..", "../etc/passwd", "a/b", "/", "/a", "a/", "..\\..\\a", "a\\b", "\\", "\u{0}",
        "a\u{0}b", "a\nb", "a\rb", "a\tb", "\u{1B}[31m", "a\u{7F}", "a\u{80}b", "a\u{85}b",
        "a\u{9F}b", "a\u{2028}b", "a\u{2029}b", "exe\u{202E}txt.", "a\u{202A}b", "a\u{202B}b",
        "a\u{202C}b", "a\u{202D}b", "a\u{2066}b", "a\u{2067}b", "a\u{2068}b", "a\u{2069}b",
        "a\u{61C}b", "\u{FEFF}a", String(repeating: "a", count: 256),
        String(repeating: "é", count: 128), String(repeating: "字", count: 3413),
        String(repeating: "../", count: 3413), "e" + String(repeating: "\u{301}", count: 5000),
    ]

    @Test(arguments: good)
    func `a harmless name is valid and stays as it is`(name: String) {
        #expect(FileName.isValid(name))
        #expect(FileName.sanitized(name) == name)
    }

    @Test(arguments: bad)
    func `a harmful name is invalid and is sanitized into a valid one`(name: String) {
        #expect(!FileName.isValid(name))
        #expect(FileName.isValid(FileName.sanitized(name)))
    }

    @Test(arguments: [
        ("../../etc/passwd", "passwd"), ("/a/b/c.txt", "c.txt"), ("a/", "a"),
        ("a\u{0}b\nc", "a_b_c"), ("a\\b", "a_b"), ("exe\u{202E}txt", "exe_txt"),
        ("\u{202A}a\u{202C}", "_a_"), ("\u{2066}a\u{2069}", "_a_"), ("a/..", "file"),
        ("", "file"), ("///", "file"),
    ])
    func `a sanitized name keeps the last path component and marks replaced characters`(
        name: String, made: String
    ) {
        #expect(FileName.sanitized(name) == made)
    }

    @Test func `a long file name is cut between characters`() {
        let made = FileName.sanitized(String(repeating: "字", count: 1000))
        #expect(made == String(repeating: "字", count: 85))
        // A family has 25 bytes: ten fit, and the eleventh is not cut into its members.
        let families = FileName.sanitized(String(repeating: "👨‍👩‍👧‍👦", count: 100))
        #expect(families == String(repeating: "👨‍👩‍👧‍👦", count: 10))
    }

    @Test(arguments: 1...100 as ClosedRange<UInt64>)
    func `a sanitized name is valid and stable for any input`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let count = Int.random(in: 0...400, using: &generator)
        var scalars = String.UnicodeScalarView()
        for _ in 0..<count {
            // Most troublesome scalars have low values. The rest of Unicode is drawn too.
            let bound: UInt32 = Bool.random(using: &generator) ? 0x100 : 0x2_FFFF
            let value = UInt32.random(in: 0...bound, using: &generator)
            scalars.append(Unicode.Scalar(value) ?? "/")
        }
        let made = FileName.sanitized(String(scalars))
        #expect(FileName.isValid(made))
        #expect(FileName.sanitized(made) == made)
    }
}
