package import KedgeFiles
package import KedgeIdentity
internal import KedgeLocks
package import KedgeModel
package import KedgeSecrets

/// The keys that sign and verify links, and the links that were revoked, as a running service needs
/// them.
///
/// Rows are kept for ``cacheLifetime``, so a key or link that another process revokes is refused
/// after that time at the latest.
package final class SigningKeys: Sendable {
    private struct Loaded {
        var signer: LinkSigner
        var readAt: Timestamp
    }

    private struct Revocation {
        var isRevoked: Bool
        var readAt: Timestamp
    }

    private struct State {
        var loaded: Loaded?
        /// The reading of the keys that is under way.
        var load: Task<LinkSigner, any Error>?
        var revocations: [LinkID: Revocation] = [:]
        /// Grows with each change of a token. What was read before one is not kept.
        var tokenChangeCount = 0
    }

    /// Time for which rows are not read again.
    package static let cacheLifetime = Duration.seconds(10)
    /// Time for which keys are not read again for a link whose key is unknown. Links with invented
    /// keys must not make the service read rows for each request.
    package static let unknownKeyPause = Duration.seconds(1)
    /// Age from which a key signs while an older one still does. All nodes have read it by then.
    package static let settlingTime = Duration.seconds(20)
    /// Begins the name of a creator that is a token.
    package static let tokenPrefix = "token:"
    /// Maximum number of links whose revocation is kept.
    static let cacheLimit = 10_000

    private let links: any LinkStore
    private let tokens: any TokenStore
    private let masters: MasterKeys
    private let now: @Sendable () -> Timestamp
    private let state = Mutex(State())

    /// - Parameter now: The clock of the rows.
    package init(
        links: any LinkStore, tokens: any TokenStore, masters: MasterKeys,
        now: @escaping @Sendable () -> Timestamp
    ) {
        self.links = links
        self.tokens = tokens
        self.masters = masters
        self.now = now
    }

    /// Returns the signer with the current keys. Makes the first key if none signs.
    package func signer() async throws -> LinkSigner {
        try await signer(within: Self.cacheLifetime)
    }

    /// Returns the link of a text, if it is valid and was not revoked.
    ///
    /// - Throws: ``LinkRefusal``; an error of the store.
    package func link(of text: String) async throws -> Link {
        var signer = try await self.signer()
        // Another node may have just made the key.
        if signer.lacksKey(of: text) {
            signer = try await self.signer(within: Self.unknownKeyPause)
        }
        let link = try signer.verify(text, at: now())
        guard try await !isRevoked(link) else { throw LinkRefusal.invalid }
        return link
    }

    /// Whether the link was revoked, or the token by which it was made.
    ///
    /// - Parameter link: A verified link. Others could fill the cache.
    package func isRevoked(_ link: Link) async throws -> Bool {
        let now = now()
        let (kept, changeCount) = state.withLock { state -> (Bool?, Int) in
            guard let kept = state.revocations[link.id],
                Self.isFresh(kept.readAt, at: now, within: Self.cacheLifetime)
            else { return (nil, state.tokenChangeCount) }
            return (kept.isRevoked, state.tokenChangeCount)
        }
        if let kept { return kept }
        let isRevoked = try await readRevocation(of: link)
        keep(isRevoked, link.id, readAt: now, after: changeCount)
        return isRevoked
    }

    /// Reads again which links are revoked, because a token has changed: its links end with it.
    package func forgetTokens() {
        state.withLock { state in
            state.tokenChangeCount += 1
            state.revocations = state.revocations.filter(\.value.isRevoked)
        }
    }

    /// Revokes a link. This process refuses it from now on.
    ///
    /// - Parameter until: The end of the link, until which the revocation is stored.
    package func revoke(_ id: LinkID, until: Timestamp) async throws {
        try await links.revokeLink(id, until: until)
        keep(true, id, readAt: now())
    }

    /// Whether the rows were read lately. A clock that went back makes them stale.
    private static func isFresh(
        _ readAt: Timestamp, at now: Timestamp, within lifetime: Duration
    ) -> Bool {
        readAt <= now && now.duration(since: readAt) < lifetime
    }

    private func readRevocation(of link: Link) async throws -> Bool {
        if try await links.isRevoked(link.id) { return true }
        guard let creator = link.createdBy, creator.hasPrefix(Self.tokenPrefix),
            let id = TokenID(creator.dropFirst(Self.tokenPrefix.count))
        else { return false }
        // Tokens are never deleted. A missing one, as after a restored backup, is not trusted.
        guard let token = try await tokens.token(id) else { return true }
        return token.revokedAt != nil
    }

    /// - Parameter changeCount: Number of changes of tokens before the reading; nil if it does not
    ///   depend on them.
    private func keep(
        _ isRevoked: Bool, _ id: LinkID, readAt: Timestamp, after changeCount: Int? = nil
    ) {
        state.withLock { state in
            guard isRevoked || changeCount ?? state.tokenChangeCount == state.tokenChangeCount
            else { return }
            if state.revocations.count >= Self.cacheLimit, state.revocations[id] == nil {
                state.revocations = state.revocations.filter {
                    Self.isFresh($0.value.readAt, at: readAt, within: Self.cacheLifetime)
                }
                if state.revocations.count >= Self.cacheLimit { state.revocations = [:] }
            }
            // A revocation is for ever; a reading that began before it does not count.
            let isRevoked = isRevoked || state.revocations[id]?.isRevoked ?? false
            state.revocations[id] = Revocation(isRevoked: isRevoked, readAt: readAt)
        }
    }

    /// Returns the signer with keys that were read within the time.
    private func signer(within lifetime: Duration) async throws -> LinkSigner {
        let now = now()
        let (kept, load) = state.withLock { state -> (LinkSigner?, Task<LinkSigner, any Error>?) in
            if let loaded = state.loaded, Self.isFresh(loaded.readAt, at: now, within: lifetime) {
                return (loaded.signer, nil)
            }
            if let load = state.load { return (nil, load) }
            // Awaited below, and by the requests that come meanwhile. It removes itself only after
            // this closure has added it, because that needs the lock.
            let load = Task { [self] in try await readKeys() }
            state.load = load
            return (nil, load)
        }
        if let kept { return kept }
        guard let load else { preconditionFailure("there is a signer or a task that reads one") }
        return try await load.value
    }

    private func readKeys() async throws -> LinkSigner {
        defer { state.withLock { $0.load = nil } }
        let now = now()
        var records = try await links.signingKeys()
        let first = masters.first.fingerprint
        if !records.contains(where: { $0.masterFingerprint == first && $0.signs(at: now) }) {
            // Another node may do the same at once; both keys are good.
            let record = SigningKeyRecord(
                id: LinkKey.randomID(), masterFingerprint: first, createdAt: now)
            try await links.insert(record)
            records.append(record)
        }
        let settled = records.filter { record in
            record.signs(at: now) && masters[record.masterFingerprint] != nil
                && record.createdAt.advanced(by: Self.settlingTime) <= now
        }
        let keys = records.compactMap { record in
            record.key(of: masters, maySign: settled.isEmpty || settled.contains(record))
        }
        let signer = LinkSigner(keys: LinkKeys(keys))
        state.withLock { $0.loaded = Loaded(signer: signer, readAt: now) }
        return signer
    }
}

extension SigningKeys {
    /// Reads the master keys, and checks that they are those of the database. Makes the file at its
    /// default place if there is none, unless the database has keys of a file that was lost.
    ///
    /// - Throws: ``MasterKeyFileError``, ``ForeignMasterKey``; an error of the store.
    package static func masterKeys(
        in file: MasterKeyFile, of links: any LinkStore, at now: Timestamp, on pool: BlockingPool
    ) async throws -> MasterKeys {
        let known = Set(
            try await links.signingKeys().filter { $0.verifies(at: now) }.map(\.masterFingerprint))
        let masters = try await pool.run {
            try file.load(mayCreate: file.isDefault && known.isEmpty)
        }
        guard known.isEmpty || !known.isDisjoint(with: masters.fingerprints) else {
            throw ForeignMasterKey(path: file.path, found: masters.fingerprints, known: known)
        }
        return masters
    }
}

/// The master keys of a file derive none of the keys in the database.
package struct ForeignMasterKey: Error, Sendable, CustomStringConvertible {
    package let path: String
    package let found: Set<String>
    package let known: Set<String>

    package var description: String {
        let (found, known) = (found.sorted(), known.sorted())
        return "the master key file \(path) has \(found.joined(separator: ", ")), and the database "
            + "knows keys of \(known.joined(separator: ", ")): name the file with that master key "
            + "in secrets.masterKeyFile"
    }
}

extension SigningKeyRecord {
    /// Derives the key from its master key; nil if the service does not have that one.
    fileprivate func key(of masters: MasterKeys, maySign: Bool) -> LinkKey? {
        guard LinkKey.isWellFormed(id), let master = masters[masterFingerprint] else { return nil }
        return LinkKey(
            id: id, master: master, createdAt: createdAt,
            signsUntil: maySign ? signsUntil : createdAt, verifiesUntil: verifiesUntil)
    }
}
