import KedgeEngine
import KedgeFiles
import KedgeIdentity
import KedgeModel
import KedgeSQLite
import KedgeSecrets
import KedgeServer
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct SigningKeysTests {
    /// Counts the readings of the keys.
    private struct CountedLinks: LinkStore {
        let real: SQLiteStore
        let readCount = Shared(0)

        func signingKeys() async throws -> [SigningKeyRecord] {
            _ = readCount.increment()
            return try await real.signingKeys()
        }

        func insert(_ key: SigningKeyRecord) async throws { try await real.insert(key) }

        func updateSigningKey(
            _ id: String, signsUntil: Timestamp?, verifiesUntil: Timestamp?
        ) async throws -> Bool {
            try await real.updateSigningKey(
                id, signsUntil: signsUntil, verifiesUntil: verifiesUntil)
        }

        func revokeLink(_ id: LinkID, until: Timestamp) async throws {
            try await real.revokeLink(id, until: until)
        }

        func isRevoked(_ id: LinkID) async throws -> Bool { try await real.isRevoked(id) }
    }

    private let directory: TemporaryDirectory
    private let clock = ManualClock()
    private let master = MasterKey.generate()
    private let pool = BlockingPool(threadCount: 2)

    init() throws { directory = try TemporaryDirectory() }

    /// Lends a store.
    private func withStore(
        _ body: (SQLiteStore, CountedLinks) async throws -> Void
    ) async throws {
        let store = try await SQLiteStore.open(
            at: directory.path + "/kedge.sqlite", now: clock.now(), pool: pool
        ) { Issue.record("the database failed for good: \($0)") }
        try await body(store, CountedLinks(real: store))
        try await store.close()
    }

    /// The keys as a node has them.
    private func node(
        _ store: SQLiteStore, _ links: CountedLinks, _ masters: MasterKeys? = nil
    ) -> SigningKeys {
        SigningKeys(
            links: links, tokens: store, masters: masters ?? MasterKeys(master),
            now: { [clock] in clock.now() })
    }

    private func link(createdBy: String? = nil) -> Link {
        Link(
            owner: OwnerID("alice"), grant: .session(LinkedSession(session: .random())),
            expiresAt: clock.now().advanced(by: .seconds(3600)), createdBy: createdBy)
    }

    private func sign(_ link: Link, by keys: SigningKeys) async throws -> String {
        try await keys.signer().sign(link, at: clock.now())
    }

    @Test func `the first key is made once and signs after a restart`() async throws {
        try await withStore { store, links in
            let link = self.link()
            let text = try await sign(link, by: node(store, links))
            #expect(try await node(store, links).link(of: text) == link)
            let keys = try await store.signingKeys()
            #expect(keys.map(\.masterFingerprint) == [master.fingerprint])
        }
    }

    @Test func `keys are read once for many requests, and again after ten seconds`() async throws {
        try await withStore { store, links in
            let keys = node(store, links)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<50 { group.addTask { _ = try await keys.signer() } }
                try await group.waitForAll()
            }
            #expect(links.readCount.value == 1)
            #expect(try await store.signingKeys().count == 1)
            clock.advance(by: .milliseconds(9999))
            _ = try await keys.signer()
            #expect(links.readCount.value == 1)
            clock.advance(by: .milliseconds(1))
            _ = try await keys.signer()
            #expect(links.readCount.value == 2)
        }
    }

    @Test func `a key of another node is read when a link names it, once a second`() async throws {
        try await withStore { store, links in
            let (first, second) = (node(store, links), node(store, links))
            _ = try await first.signer()
            clock.advance(by: .seconds(1))
            // The key of another node, which has not seen the first one.
            try await store.insert(
                SigningKeyRecord(
                    id: "other", masterFingerprint: master.fingerprint, createdAt: clock.now()))
            let other = LinkSigner(
                keys: LinkKeys([
                    LinkKey(id: "other", master: master, createdAt: clock.now())
                ]))
            let link = self.link()
            let text = try other.sign(link, at: clock.now())
            #expect(try await first.link(of: text) == link)
            #expect(try await second.link(of: text) == link)
            let count = links.readCount.value
            let invented = text.replacing(".other.", with: ".invented.")
            for _ in 0..<20 {
                await #expect(throws: LinkRefusal.invalid) { try await first.link(of: invented) }
            }
            #expect(links.readCount.value == count)
            clock.advance(by: .seconds(1))
            await #expect(throws: LinkRefusal.invalid) { try await first.link(of: invented) }
            #expect(links.readCount.value == count + 1)
        }
    }

    @Test func `a new key signs once all nodes know it, and the one before it verifies on`()
        async throws
    {
        try await withStore { store, links in
            let keys = node(store, links)
            let (early, late) = (self.link(), self.link())
            let before = try await sign(early, by: keys)
            let old = try #require(try await store.signingKeys().first)
            clock.advance(by: .seconds(60))
            let now = clock.now()
            try await store.insert(
                SigningKeyRecord(
                    id: "next", masterFingerprint: master.fingerprint, createdAt: now))
            #expect(
                try await store.updateSigningKey(
                    old.id, signsUntil: now.advanced(by: .seconds(30)),
                    verifiesUntil: now.advanced(by: .seconds(1000))))
            #expect(try await sign(late, by: keys).hasPrefix("kl1.\(old.id)."))
            clock.advance(by: .seconds(30))
            #expect(try await sign(late, by: keys).hasPrefix("kl1.next."))
            #expect(try await keys.link(of: before) == early)
            clock.advance(by: .seconds(970))
            await #expect(throws: LinkRefusal.expired) { try await keys.link(of: before) }
        }
    }

    @Test func `a revoked key ends within ten seconds, and another one is made`() async throws {
        try await withStore { store, links in
            let keys = node(store, links)
            let text = try await sign(self.link(), by: keys)
            let key = try #require(try await store.signingKeys().first)
            let now = clock.now()
            #expect(
                try await store.updateSigningKey(key.id, signsUntil: now, verifiesUntil: now))
            clock.advance(by: SigningKeys.cacheLifetime)
            await #expect(throws: LinkRefusal.expired) { try await keys.link(of: text) }
            let next = self.link()
            let nextText = try await sign(next, by: keys)
            #expect(try await keys.link(of: nextText) == next)
            #expect(try await store.signingKeys().count == 2)
        }
    }

    @Test func `keys of an earlier master key verify while the file has it`() async throws {
        try await withStore { store, links in
            let link = self.link()
            let text = try await sign(link, by: node(store, links))
            let next = MasterKey.generate()
            let both = try MasterKeys(text: "\(next.text)\n\(master.text)\n")
            let keys = node(store, links, both)
            #expect(try await keys.link(of: text) == link)
            #expect(
                Set(try await store.signingKeys().map(\.masterFingerprint))
                    == [master.fingerprint, next.fingerprint])
            await #expect(throws: LinkRefusal.invalid) {
                try await node(store, links, MasterKeys(next)).link(of: text)
            }
        }
    }

    @Test func `a revoked link is refused at once here and within ten seconds elsewhere`()
        async throws
    {
        try await withStore { store, links in
            let (here, elsewhere) = (node(store, links), node(store, links))
            let link = self.link()
            let text = try await sign(link, by: here)
            for keys in [here, elsewhere] { #expect(try await keys.link(of: text) == link) }
            try await here.revoke(link.id, until: link.expiresAt)
            await #expect(throws: LinkRefusal.invalid) { try await here.link(of: text) }
            clock.advance(by: SigningKeys.cacheLifetime)
            await #expect(throws: LinkRefusal.invalid) { try await elsewhere.link(of: text) }
        }
    }

    @Test func `a link ends with the token that made it`() async throws {
        try await withStore { store, links in
            let keys = node(store, links)
            let token = APIToken.generate()
            try await store.insert(
                TokenRecord(
                    id: token.id, secretDigest: token.secretDigest, owner: OwnerID("alice"),
                    scopes: [], name: "test", createdBy: "test", createdAt: clock.now(),
                    // A token that expires does not end its links.
                    expiresAt: clock.now().advanced(by: .seconds(1))))
            let link = self.link(createdBy: "token:\(token.id)")
            let text = try await sign(link, by: keys)
            clock.advance(by: .seconds(2))
            #expect(try await keys.link(of: text) == link)
            #expect(try await store.revokeToken(token.id, at: clock.now()))
            clock.advance(by: SigningKeys.cacheLifetime)
            await #expect(throws: LinkRefusal.invalid) { try await keys.link(of: text) }
            let lost = self.link(createdBy: "token:\(TokenID.random())")
            #expect(try await keys.isRevoked(lost))
            #expect(try await !keys.isRevoked(self.link(createdBy: "oidc:alice")))
        }
    }

    @Test func `the master key file is made for a new database only`() async throws {
        try await withStore { store, _ in
            let file = MasterKeyFile(path: directory.path + "/master.key", isDefault: true)
            let masters = try await SigningKeys.masterKeys(
                in: file, of: store, at: clock.now(), on: pool)
            try await store.insert(
                SigningKeyRecord(
                    id: "key", masterFingerprint: masters.first.fingerprint,
                    createdAt: clock.now()))
            #expect(
                try await SigningKeys.masterKeys(in: file, of: store, at: clock.now(), on: pool)
                    .fingerprints == masters.fingerprints)
            #expect(try POSIXFileSystem().remove(file.path))
            await #expect(throws: MasterKeyFileError.self) {
                try await SigningKeys.masterKeys(in: file, of: store, at: clock.now(), on: pool)
            }
            #expect(try POSIXFileSystem().status(of: file.path) == nil)
        }
    }

    @Test func `another master key is refused, unless the keys of the first have ended`()
        async throws
    {
        try await withStore { store, _ in
            try await store.insert(
                SigningKeyRecord(
                    id: "key", masterFingerprint: master.fingerprint, createdAt: clock.now()))
            let path = directory.path + "/other.key"
            _ = try MasterKeyFile(path: path, isDefault: true).load(mayCreate: true)
            let file = MasterKeyFile(path: path, isDefault: false)
            await #expect(throws: ForeignMasterKey.self) {
                try await SigningKeys.masterKeys(in: file, of: store, at: clock.now(), on: pool)
            }
            let now = clock.now()
            #expect(
                try await store.updateSigningKey("key", signsUntil: now, verifiesUntil: now))
            let masters = try await SigningKeys.masterKeys(
                in: file, of: store, at: now, on: pool)
            #expect(masters.fingerprints.count == 1)
        }
    }
}
