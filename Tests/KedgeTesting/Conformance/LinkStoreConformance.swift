package import KedgeEngine
package import KedgeIdentity
internal import KedgeModel
internal import Testing

extension ConformanceCase where Store == any MetadataStore & LinkStore {
    init(
        _ name: String,
        _ body: @escaping @Sendable (any MetadataStore & LinkStore) async throws -> Void
    ) {
        self.init(reopening: name) { open in
            let store = try await open()
            try await body(store)
            try await store.close()
        }
    }
}

/// Behaviours of every store of the keys of links and of revoked links.
package enum LinkStoreConformance {
    /// One of the promises.
    package typealias Case = ConformanceCase<any MetadataStore & LinkStore>

    private static func key(
        _ id: String = "key1", at seconds: Int64 = 0, signsUntil: Int64? = nil,
        verifiesUntil: Int64? = nil
    ) -> SigningKeyRecord {
        SigningKeyRecord(
            id: id, masterFingerprint: "0123456789abcdef", createdAt: Sample.time(seconds),
            signsUntil: signsUntil.map(Sample.time), verifiesUntil: verifiesUntil.map(Sample.time))
    }

    private static func sweep(_ store: any MetadataStore, at seconds: Int64) async throws {
        _ = try await store.expireSessions(
            now: Sample.time(seconds), graceEnd: Sample.time(0), limit: 10)
    }

    /// The promises of the port, one by one.
    package static let all = [
        Case(reopening: "keys are stored with all their values, the oldest first") { open in
            let full = key("b", at: 1, signsUntil: 10, verifiesUntil: 20)
            let (plain, young) = (key("a", at: 1), key("c", at: 2))
            let first = try await open()
            for key in [young, full, plain] { try await first.insert(key) }
            try await first.close()
            let second = try await open()
            #expect(try await second.signingKeys() == [plain, full, young])
            try await second.close()
        },
        Case("an insert of a key is idempotent, and its id is not used twice") { store in
            let stored = key()
            try await store.insert(stored)
            #expect(
                try await store.updateSigningKey(
                    stored.id, signsUntil: Sample.time(5), verifiesUntil: nil))
            try await store.insert(stored)
            #expect(try await store.signingKeys() == [key(signsUntil: 5)])
            let other = SigningKeyRecord(
                id: stored.id, masterFingerprint: "ffffffffffffffff", createdAt: Sample.time(0))
            await expectRefusal { try await store.insert(other) }
            #expect(try await store.signingKeys() == [key(signsUntil: 5)])
        },
        Case("the ends of a key never become later") { store in
            try await store.insert(key())
            let ends: [(set: (Int64?, Int64?), stored: (Int64?, Int64?))] = [
                ((10, nil), (10, nil)), ((nil, 30), (10, 30)), ((20, 40), (10, 30)),
                ((nil, nil), (10, 30)), ((5, 5), (5, 5)),
            ]
            for (set, stored) in ends {
                #expect(
                    try await store.updateSigningKey(
                        "key1", signsUntil: set.0.map(Sample.time),
                        verifiesUntil: set.1.map(Sample.time)))
                let expected = key(signsUntil: stored.0, verifiesUntil: stored.1)
                #expect(try await store.signingKeys() == [expected])
            }
            #expect(
                try await !store.updateSigningKey(
                    "other", signsUntil: Sample.time(1), verifiesUntil: nil))
        },
        Case("a key is forgotten a day after its last link ended") { store in
            try await store.insert(key("ended", verifiesUntil: 100))
            try await store.insert(key("used", signsUntil: 100))
            try await sweep(store, at: 100 + 86_400)
            #expect(try await store.signingKeys().count == 2)
            try await sweep(store, at: 101 + 86_400)
            #expect(try await store.signingKeys().map(\.id) == ["used"])
        },
        Case(reopening: "a revoked link is known until it ended") { open in
            let (id, other) = (LinkID.random(), LinkID.random())
            let first = try await open()
            #expect(try await !first.isRevoked(id))
            try await first.revokeLink(id, until: Sample.time(100))
            // The later time counts, whichever comes first.
            try await first.revokeLink(id, until: Sample.time(200))
            try await first.revokeLink(id, until: Sample.time(50))
            #expect(try await first.isRevoked(id))
            #expect(try await !first.isRevoked(other))
            try await first.close()
            let second = try await open()
            try await sweep(second, at: 200 + 86_400)
            #expect(try await second.isRevoked(id))
            try await sweep(second, at: 201 + 86_400)
            #expect(try await !second.isRevoked(id))
            try await second.close()
        },
    ]
}
