import KedgeIdentity
import Testing

struct ScopeTests {
    /// The texts are stored and sent, so they never change.
    private static let texts = [
        "uploads:write", "uploads:read", "files:read", "files:list", "files:delete",
        "links:create", "metrics:read", "act-as", "admin",
    ]

    @Test func `the scopes have stable texts`() {
        #expect(Scope.allCases.map(\.rawValue) == Self.texts)
    }

    @Test(arguments: Scope.allCases.filter { $0 != .admin })
    func `a scope is read by its text`(scope: Scope) throws {
        #expect(try Scope.parse(scope.rawValue) == [scope])
    }

    @Test(
        arguments: [
            ("uploader", [.uploadsWrite, .uploadsRead]),
            ("reader", [.filesRead, .filesList]),
            (
                "user",
                [.uploadsWrite, .uploadsRead, .filesRead, .filesList, .filesDelete, .linksCreate]
            ),
            (
                "backend",
                [
                    .uploadsWrite, .uploadsRead, .filesRead, .filesList, .filesDelete,
                    .linksCreate, .actAs,
                ]
            ),
            ("admin", Set(Scope.allCases)),
        ] as [(String, Set<Scope>)])
    func `a bundle stands for its scopes`(name: String, scopes: Set<Scope>) throws {
        #expect(try Scope.parse(name) == scopes)
    }

    @Test func `a list may mix scopes, bundles, spaces and repetitions`() throws {
        let scopes = try Scope.parse("reader, files:delete ,  uploads:write,files:read")
        #expect(scopes == [.filesRead, .filesList, .filesDelete, .uploadsWrite])
        #expect(try Scope.parse("").isEmpty)
    }

    @Test(
        arguments: [
            ("files:write", "files:write"), ("reader,root", "root"), ("reader,,user", ""),
            ("reader,", ""), (" ", ""), ("Admin", "Admin"),
            ("files:read;admin", "files:read;admin"),
            ("files:*", "files:*"), ("files:read\n", "files:read\n"),
            ("records:read", "records:read"),
        ] as [(String, String)])
    func `an unknown word refuses the whole list and is named`(text: String, word: String) {
        #expect(throws: UnknownScope(word: word)) { try Scope.parse(text) }
        #expect("\(UnknownScope(word: word))".contains("\"\(word)\""))
    }

    @Test func `the list of any set reads back`() throws {
        for scope in Scope.allCases where scope != .admin {
            let others = Set(Scope.allCases).subtracting([scope, .admin])
            #expect(try Scope.parse(Scope.text(of: others)) == others)
        }
        #expect(try Scope.parse(Scope.text(of: Scope.allCases)) == Set(Scope.allCases))
        #expect(Scope.text(of: [.uploadsRead, .actAs]) == "act-as,uploads:read")
        #expect(Scope.text(of: []).isEmpty)
    }
}
