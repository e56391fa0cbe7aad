package import KedgeEngine
package import KedgeIdentity
package import KedgeModel
internal import Testing

extension ConformanceCase where Store == any MetadataStore & TokenStore {
    init(
        _ name: String,
        _ body: @escaping @Sendable (any MetadataStore & TokenStore) async throws -> Void
    ) {
        self.init(reopening: name) { open in
            let store = try await open()
            try await body(store)
            try await store.close()
        }
    }
}

/// Behaviours of every store of API tokens.
package enum TokenStoreConformance {
    /// One of the promises.
    package typealias Case = ConformanceCase<any MetadataStore & TokenStore>

    /// The promises of the port, one by one.
    package static let all = [
        Case(reopening: "a token is stored with all its values") { open in
            var full = TokenRecord.sample(owner: Sample.owner, at: 1)
            full.expiresAt = Sample.time(100)
            full.lastUsedAt = Sample.time(50)
            full.revokedAt = Sample.time(60)
            let plain = TokenRecord.sample(owner: Sample.owner, scopes: [], at: 2)
            let first = try await open()
            try await first.insert(full)
            try await first.insert(plain)
            try await first.close()
            let second = try await open()
            #expect(try await second.token(full.id) == full)
            #expect(try await second.token(plain.id) == plain)
            #expect(try await second.token(.random()) == nil)
            try await second.close()
        },
        Case("each scope is read back as it was stored") { store in
            for scope in Scope.allCases {
                let token = TokenRecord.sample(scopes: [scope])
                try await store.insert(token)
                #expect(try await store.token(token.id)?.scopes == [scope])
            }
        },
        Case("an insert is idempotent") { store in
            let token = TokenRecord.sample()
            try await store.insert(token)
            #expect(try await store.revokeToken(token.id, at: Sample.time(5)))
            try await store.insert(token)
            #expect(try await store.token(token.id)?.revokedAt == Sample.time(5))
            #expect(try await store.tokens(of: nil, limit: 10).count == 1)
        },
        Case("an id is not used for a second token") { store in
            let token = TokenRecord.sample()
            try await store.insert(token)
            let other = TokenRecord.sample(id: token.id, owner: Sample.stranger)
            await expectRefusal { try await store.insert(other) }
            #expect(try await store.token(token.id) == token)
        },
        Case("tokens are listed newest first, of all owners or of one") { store in
            var tokens: [TokenRecord] = []
            for second in 1...4 {
                let owner = second == 3 ? Sample.stranger : Sample.owner
                tokens.append(.sample(owner: owner, at: Int64(second)))
            }
            for token in tokens { try await store.insert(token) }
            #expect(try await store.tokens(of: nil, limit: 10) == tokens.reversed())
            #expect(
                try await store.tokens(of: Sample.owner, limit: 10)
                    == [tokens[3], tokens[1], tokens[0]])
            #expect(try await store.tokens(of: Sample.owner, limit: 2) == [tokens[3], tokens[1]])
            #expect(try await store.tokens(of: OwnerID("nobody"), limit: 10) == [])
        },
        Case("tokens of one moment are listed in the order of their ids") { store in
            var tokens: [TokenRecord] = []
            for _ in 0..<20 { tokens.append(.sample()) }
            for token in tokens { try await store.insert(token) }
            let listed = try await store.tokens(of: nil, limit: 100).map { Array($0.id.text.utf8) }
            let ids = tokens.map { Array($0.id.text.utf8) }
            #expect(listed == ids.sorted { $1.lexicographicallyPrecedes($0) })
        },
        Case("the first revocation counts") { store in
            let (token, other) = (TokenRecord.sample(), TokenRecord.sample())
            try await store.insert(token)
            try await store.insert(other)
            #expect(try await store.revokeToken(token.id, at: Sample.time(5)))
            #expect(try await store.revokeToken(token.id, at: Sample.time(6)))
            #expect(try await store.token(token.id)?.revokedAt == Sample.time(5))
            #expect(try await store.token(other.id)?.revokedAt == nil)
            #expect(try await !store.revokeToken(.random(), at: Sample.time(5)))
        },
        Case("a token is valid until it expires or is revoked") { store in
            func isThereOne(at second: Int64) async throws -> Bool {
                try await store.hasValidToken(at: Sample.time(second))
            }
            #expect(try await !isThereOne(at: 0))
            var brief = TokenRecord.sample()
            brief.expiresAt = Sample.time(10)
            try await store.insert(brief)
            #expect(try await isThereOne(at: 9))
            #expect(try await !isThereOne(at: 10))
            let endless = TokenRecord.sample()
            try await store.insert(endless)
            #expect(try await isThereOne(at: 10))
            #expect(try await store.revokeToken(endless.id, at: Sample.time(5)))
            #expect(try await !isThereOne(at: 10))
            #expect(try await isThereOne(at: 9))
        },
        Case("the last use never moves back") { store in
            let token = TokenRecord.sample()
            try await store.insert(token)
            for (second, expected) in [(10, 10), (9, 10), (11, 11)] as [(Int64, Int64)] {
                try await store.touchToken(token.id, at: Sample.time(second))
                #expect(try await store.token(token.id)?.lastUsedAt == Sample.time(expected))
            }
            try await store.touchToken(.random(), at: Sample.time(5))
            #expect(try await store.tokens(of: nil, limit: 10).count == 1)
        },
    ]
}

extension TokenRecord {
    /// A token with a secret of its own.
    package static func sample(
        id: TokenID = .random(), owner: OwnerID = Sample.owner,
        scopes: Set<Scope> = [.uploadsWrite, .filesRead], at seconds: Int64 = 0
    ) -> TokenRecord {
        TokenRecord(
            id: id, secretDigest: APIToken.generate().secretDigest, owner: owner, scopes: scopes,
            name: "ship's \"é\"", createdBy: "local:1000", createdAt: Sample.time(seconds))
    }
}
