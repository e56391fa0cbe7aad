internal import GRDB
package import KedgeEngine
package import KedgeIdentity
package import KedgeModel

extension SQLiteStore: OwnerStore {
    package func owner(_ id: OwnerID) async throws -> OwnerRecord? {
        try await commits.read { db in
            try db.row(
                "SELECT \(OwnerRecord.columns) FROM owner WHERE owner = ?", [id.text]
            ).map { OwnerRecord($0) }
        }
    }

    package func owners(after owner: OwnerID?, limit: Int) async throws -> [OwnerRecord] {
        try await commits.read { db in
            try db.rows(
                "SELECT \(OwnerRecord.columns) FROM owner WHERE owner > ? ORDER BY owner LIMIT ?",
                [owner?.text ?? "", limit]
            ).map { OwnerRecord($0) }
        }
    }

    package func setLimits(_ limits: OwnerLimits, of owner: OwnerID) async throws {
        _ = try await commits.write { db in
            try db.run(
                """
                INSERT INTO owner (owner, max_stored_bytes, max_open_sessions, max_file_bytes)
                VALUES (?, ?, ?, ?)
                ON CONFLICT (owner) DO UPDATE SET max_stored_bytes = excluded.max_stored_bytes,
                    max_open_sessions = excluded.max_open_sessions,
                    max_file_bytes = excluded.max_file_bytes
                """,
                [
                    owner.text, limits.maxStoredBytes, limits.maxOpenSessions,
                    limits.maxFileBytes,
                ])
        }
    }

    package func setBlocked(_ isBlocked: Bool, of owner: OwnerID) async throws {
        _ = try await commits.write { db in
            try db.run(
                """
                INSERT INTO owner (owner, blocked) VALUES (?, ?)
                ON CONFLICT (owner) DO UPDATE SET blocked = excluded.blocked
                """, [owner.text, isBlocked])
        }
    }
}

extension SQLiteStore {
    package func quota(of owner: OwnerID, within quota: QuotaLimits) async throws -> OwnerQuota {
        try await commits.read { db in try db.quota(of: owner, within: quota) }
    }
}

extension SQLiteStore: QuotaRepair {
    package func repairQuota(of owner: OwnerID) async throws {
        try await commits.write { db in try db.repairQuota(of: owner) }
    }
}

extension OwnerRecord {
    fileprivate static let columns = """
        owner, max_stored_bytes, max_open_sessions, max_file_bytes, stored_bytes, reserved_bytes, \
        open_sessions, blocked
        """

    fileprivate init(_ row: Row) {
        self.init(
            owner: OwnerID(row["owner"]),
            limits: OwnerLimits(
                maxStoredBytes: row["max_stored_bytes"],
                maxOpenSessions: row["max_open_sessions"], maxFileBytes: row["max_file_bytes"]),
            usage: OwnerUsage(
                storedBytes: row["stored_bytes"], reservedBytes: row["reserved_bytes"],
                openSessions: row["open_sessions"]),
            isBlocked: row["blocked"])
    }
}
