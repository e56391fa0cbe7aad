internal import KedgeEngine
package import KedgeIdentity
package import KedgeModel

// A writing operation may run a second time after a commit that was not acknowledged. All are
// idempotent.
extension PostgresStore: LinkStore {
    package func signingKeys() async throws -> [SigningKeyRecord] {
        try await single { db in
            try db.query(
                "SELECT \(SigningKeyRecord.columns) FROM signing_key ORDER BY created_at, id"
            ).rows.map { try SigningKeyRecord($0) }
        }
    }

    package func insert(_ key: SigningKeyRecord) async throws {
        try await write { db in
            let added = try db.query(
                """
                INSERT INTO signing_key (\(SigningKeyRecord.columns))
                VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING RETURNING 1
                """,
                [
                    .text(key.id), .text(key.masterFingerprint), .time(key.createdAt),
                    .int8(key.signsUntil?.millisecondsSinceEpoch),
                    .int8(key.verifiesUntil?.millisecondsSinceEpoch),
                ])
            guard added.rowCount == 0 else { return }
            let known = try db.query(
                """
                SELECT 1 FROM signing_key
                WHERE id = $1 AND master_fingerprint = $2 AND created_at = $3
                """, [.text(key.id), .text(key.masterFingerprint), .time(key.createdAt)])
            guard known.rowCount > 0 else {
                throw MetadataError.failed("another key has this id")
            }
        }
    }

    package func updateSigningKey(
        _ id: String, signsUntil: Timestamp?, verifiesUntil: Timestamp?
    ) async throws -> Bool {
        try await write { db in
            // least() ignores NULL.
            try db.query(
                """
                UPDATE signing_key SET signs_until = least(signs_until, $2),
                    verifies_until = least(verifies_until, $3)
                WHERE id = $1 RETURNING 1
                """,
                [
                    .text(id), .int8(signsUntil?.millisecondsSinceEpoch),
                    .int8(verifiesUntil?.millisecondsSinceEpoch),
                ]
            ).rowCount > 0
        }
    }

    package func revokeLink(_ id: LinkID, until: Timestamp) async throws {
        try await write { db in
            _ = try db.query(
                """
                INSERT INTO revoked_link (link_id, until) VALUES ($1, $2)
                ON CONFLICT (link_id) DO UPDATE
                SET until = greatest(revoked_link.until, excluded.until)
                """, [.text(id.text), .time(until)])
        }
    }

    package func isRevoked(_ id: LinkID) async throws -> Bool {
        try await single { db in
            try db.query(
                "SELECT 1 FROM revoked_link WHERE link_id = $1", [.text(id.text)]
            ).rowCount > 0
        }
    }
}

extension SigningKeyRecord {
    /// The columns that ``init(_:)`` reads, in order.
    fileprivate static let columns = """
        id, master_fingerprint, created_at, signs_until, verifies_until
        """

    fileprivate init(_ row: PostgresRow) throws {
        var row = row
        self.init(
            id: try row.text(), masterFingerprint: try row.text(), createdAt: try row.time(),
            signsUntil: row.optionalTime(), verifiesUntil: row.optionalTime())
    }
}
