internal import Foundation
internal import GRDB
internal import KedgeEngine
package import KedgeIdentity
package import KedgeModel

extension SQLiteStore: TokenStore {
    package func insert(_ token: TokenRecord) async throws {
        try await commits.write { db in
            let count = try db.run(
                """
                INSERT INTO token (\(TokenRecord.columns))
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
                """,
                [
                    token.id.text, token.secretDigest.data, token.owner.text,
                    Scope.text(of: token.scopes), token.name, token.createdBy,
                    token.createdAt.millisecondsSinceEpoch,
                    token.expiresAt?.millisecondsSinceEpoch,
                    token.lastUsedAt?.millisecondsSinceEpoch,
                    token.revokedAt?.millisecondsSinceEpoch,
                ])
            guard count == 0 else { return }
            guard try db.token(token.id)?.secretDigest == token.secretDigest else {
                throw MetadataError.failed("another token has this id")
            }
        }
    }

    package func token(_ id: TokenID) async throws -> TokenRecord? {
        try await commits.read { db in try db.token(id) }
    }

    package func tokens(of owner: OwnerID?, limit: Int) async throws -> [TokenRecord] {
        try await commits.read { db in
            try db.rows(
                """
                SELECT \(TokenRecord.columns) FROM token WHERE ?1 IS NULL OR owner = ?1
                ORDER BY created_at DESC, id DESC LIMIT ?2
                """, [owner?.text, limit]
            ).map { try TokenRecord($0) }
        }
    }

    package func hasValidToken(at now: Timestamp) async throws -> Bool {
        try await commits.read { db in
            try db.exists(
                """
                SELECT 1 FROM token
                WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?) LIMIT 1
                """, [now.millisecondsSinceEpoch])
        }
    }

    package func revokeToken(_ id: TokenID, at now: Timestamp) async throws -> Bool {
        try await commits.write { db in
            try db.run(
                "UPDATE token SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1",
                [id.text, now.millisecondsSinceEpoch]) > 0
        }
    }

    package func touchToken(_ id: TokenID, at now: Timestamp) async throws {
        _ = try await commits.write { db in
            try db.run(
                """
                UPDATE token SET last_used_at = ?2
                WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)
                """, [id.text, now.millisecondsSinceEpoch])
        }
    }

    /// Ends at once: only this process uses the database.
    package func identityChanges() -> AsyncStream<IdentityChange> { AsyncStream { $0.finish() } }
}

extension Database {
    fileprivate func token(_ id: TokenID) throws -> TokenRecord? {
        try row("SELECT \(TokenRecord.columns) FROM token WHERE id = ?", [id.text])
            .map { try TokenRecord($0) }
    }
}

extension TokenRecord {
    fileprivate static let columns = """
        id, secret_sha256, owner, scopes, name, created_by, created_at, expires_at, last_used_at, \
        revoked_at
        """

    fileprivate init(_ row: Row) throws {
        guard let id = TokenID(row["id"] as String), let digest = try row.digest("secret_sha256")
        else { throw MetadataError.failed("a token has no valid id or digest") }
        self.init(
            id: id, secretDigest: digest, owner: OwnerID(row["owner"]),
            scopes: Scope.stored(row["scopes"]), name: row["name"], createdBy: row["created_by"],
            createdAt: row.time("created_at"), expiresAt: row.optionalTime("expires_at"),
            lastUsedAt: row.optionalTime("last_used_at"),
            revokedAt: row.optionalTime("revoked_at"))
    }
}
