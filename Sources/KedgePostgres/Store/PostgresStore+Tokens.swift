internal import KedgeEngine
package import KedgeIdentity
package import KedgeModel

// A writing operation may run a second time after a commit that was not acknowledged. All are
// idempotent.
extension PostgresStore: TokenStore {
    package func insert(_ token: TokenRecord) async throws {
        try await write { db in
            let added = try db.query(
                """
                INSERT INTO token (\(TokenRecord.columns))
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (id) DO NOTHING
                RETURNING 1
                """,
                [
                    .text(token.id.text), .digest(token.secretDigest), .text(token.owner.text),
                    .text(Scope.text(of: token.scopes)), .text(token.name),
                    .text(token.createdBy), .time(token.createdAt),
                    .int8(token.expiresAt?.millisecondsSinceEpoch),
                    .int8(token.lastUsedAt?.millisecondsSinceEpoch),
                    .int8(token.revokedAt?.millisecondsSinceEpoch),
                ])
            guard added.rowCount == 0 else { return }
            guard try db.token(token.id)?.secretDigest == token.secretDigest else {
                throw MetadataError.failed("another token has this id")
            }
        }
    }

    package func token(_ id: TokenID) async throws -> TokenRecord? {
        try await single { db in try db.token(id) }
    }

    package func tokens(of owner: OwnerID?, limit: Int) async throws -> [TokenRecord] {
        try await single { db in
            try db.query(
                """
                SELECT \(TokenRecord.columns) FROM token WHERE $1 IS NULL OR owner = $1
                ORDER BY created_at DESC, id DESC LIMIT $2
                """, [.text(owner?.text), .int8(Int64(limit))]
            ).rows.map { try TokenRecord($0) }
        }
    }

    package func hasValidToken(at now: Timestamp) async throws -> Bool {
        try await single { db in
            try db.query(
                """
                SELECT 1 FROM token
                WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1) LIMIT 1
                """, [.time(now)]
            ).rowCount > 0
        }
    }

    package func revokeToken(_ id: TokenID, at now: Timestamp) async throws -> Bool {
        try await write { db in
            let revoked = try db.query(
                """
                UPDATE token SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING 1
                """, [.text(id.text), .time(now)]
            ).rowCount
            guard revoked > 0 else { return false }
            try db.notify(.token(id))
            return true
        }
    }

    package func touchToken(_ id: TokenID, at now: Timestamp) async throws {
        try await write { db in
            _ = try db.query(
                """
                UPDATE token SET last_used_at = $2
                WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)
                """, [.text(id.text), .time(now)])
        }
    }
}

extension PostgresStore {
    package func identityChanges() -> AsyncStream<IdentityChange> {
        listener?.identityChanges() ?? AsyncStream { $0.finish() }
    }
}

extension PostgresConnection {
    /// Notifies other nodes of a change, when the transaction commits.
    func notify(_ change: IdentityChange) throws {
        _ = try query("SELECT pg_notify('\(Self.identityChannel)', $1)::text", [.text(change.text)])
    }

    /// The channel of notifications of changed tokens and owners.
    static let identityChannel = "kedge_token"

    fileprivate func token(_ id: TokenID) throws -> TokenRecord? {
        try query(
            "SELECT \(TokenRecord.columns) FROM token WHERE id = $1", [.text(id.text)]
        ).firstRow.map { try TokenRecord($0) }
    }
}

extension TokenRecord {
    /// The columns that ``init(_:)`` reads, in order.
    fileprivate static let columns = """
        id, secret_sha256, owner, scopes, name, created_by, created_at, expires_at, last_used_at, \
        revoked_at
        """

    fileprivate init(_ row: PostgresRow) throws {
        var row = row
        guard let id = TokenID(try row.text()) else {
            throw MetadataError.failed("a token has no valid id")
        }
        self.init(
            id: id, secretDigest: try row.digest(), owner: OwnerID(try row.text()),
            scopes: Scope.stored(try row.text()), name: try row.text(),
            createdBy: try row.text(), createdAt: try row.time(), expiresAt: row.optionalTime(),
            lastUsedAt: row.optionalTime(), revokedAt: row.optionalTime())
    }
}
