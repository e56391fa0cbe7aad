internal import GRDB
internal import KedgeEngine
package import KedgeIdentity
package import KedgeModel

extension SQLiteStore: LinkStore {
    package func signingKeys() async throws -> [SigningKeyRecord] {
        try await commits.read { db in
            try db.rows(
                "SELECT \(SigningKeyRecord.columns) FROM signing_key ORDER BY created_at, id", []
            ).map { SigningKeyRecord($0) }
        }
    }

    package func insert(_ key: SigningKeyRecord) async throws {
        try await commits.write { db in
            let count = try db.run(
                """
                INSERT INTO signing_key (\(SigningKeyRecord.columns))
                VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
                """,
                [
                    key.id, key.masterFingerprint, key.createdAt.millisecondsSinceEpoch,
                    key.signsUntil?.millisecondsSinceEpoch,
                    key.verifiesUntil?.millisecondsSinceEpoch,
                ])
            guard count == 0 else { return }
            let isKnown = try db.exists(
                """
                SELECT 1 FROM signing_key
                WHERE id = ? AND master_fingerprint = ? AND created_at = ?
                """, [key.id, key.masterFingerprint, key.createdAt.millisecondsSinceEpoch])
            guard isKnown else { throw MetadataError.failed("another key has this id") }
        }
    }

    package func updateSigningKey(
        _ id: String, signsUntil: Timestamp?, verifiesUntil: Timestamp?
    ) async throws -> Bool {
        try await commits.write { db in
            // min() is NULL if one of its values is.
            try db.run(
                """
                UPDATE signing_key SET
                    signs_until = coalesce(min(signs_until, ?2), signs_until, ?2),
                    verifies_until = coalesce(min(verifies_until, ?3), verifies_until, ?3)
                WHERE id = ?1
                """,
                [id, signsUntil?.millisecondsSinceEpoch, verifiesUntil?.millisecondsSinceEpoch]
            ) > 0
        }
    }

    package func revokeLink(_ id: LinkID, until: Timestamp) async throws {
        try await commits.write { db in
            _ = try db.run(
                """
                INSERT INTO revoked_link (link_id, until) VALUES (?, ?)
                ON CONFLICT (link_id) DO UPDATE SET until = max(until, excluded.until)
                """, [id.text, until.millisecondsSinceEpoch])
        }
    }

    package func isRevoked(_ id: LinkID) async throws -> Bool {
        try await commits.read { db in
            try db.exists("SELECT 1 FROM revoked_link WHERE link_id = ?", [id.text])
        }
    }
}

extension SigningKeyRecord {
    fileprivate static let columns = """
        id, master_fingerprint, created_at, signs_until, verifies_until
        """

    fileprivate init(_ row: Row) {
        self.init(
            id: row["id"], masterFingerprint: row["master_fingerprint"],
            createdAt: row.time("created_at"), signsUntil: row.optionalTime("signs_until"),
            verifiesUntil: row.optionalTime("verifies_until"))
    }
}
