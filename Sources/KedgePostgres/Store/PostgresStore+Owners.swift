package import KedgeEngine
package import KedgeIdentity
package import KedgeModel

// A writing operation may run a second time after a commit that was not acknowledged. All are
// idempotent.
extension PostgresStore: OwnerStore {
    package func owner(_ id: OwnerID) async throws -> OwnerRecord? {
        try await single { db in
            try db.query(
                "SELECT \(OwnerRecord.columns) FROM owner WHERE owner = $1", [.text(id.text)]
            ).firstRow.map { try OwnerRecord($0) }
        }
    }

    package func owners(after owner: OwnerID?, limit: Int) async throws -> [OwnerRecord] {
        try await single { db in
            try db.query(
                """
                SELECT \(OwnerRecord.columns) FROM owner WHERE owner > $1
                ORDER BY owner LIMIT $2
                """, [.text(owner?.text ?? ""), .int8(Int64(limit))]
            ).rows.map { try OwnerRecord($0) }
        }
    }

    package func setLimits(_ limits: OwnerLimits, of owner: OwnerID) async throws {
        try await write(of: owner) { db in
            _ = try db.query(
                """
                INSERT INTO owner (owner, max_stored_bytes, max_open_sessions, max_file_bytes)
                VALUES ($1, $2, $3, $4)
                ON CONFLICT (owner) DO UPDATE SET max_stored_bytes = excluded.max_stored_bytes,
                    max_open_sessions = excluded.max_open_sessions,
                    max_file_bytes = excluded.max_file_bytes
                """,
                [
                    .text(owner.text), .int8(limits.maxStoredBytes),
                    .int8(limits.maxOpenSessions.map { Int64($0) }), .int8(limits.maxFileBytes),
                ])
        }
    }

    package func setBlocked(_ isBlocked: Bool, of owner: OwnerID) async throws {
        try await write(of: owner) { db in
            _ = try db.query(
                """
                INSERT INTO owner (owner, blocked) VALUES ($1, $2)
                ON CONFLICT (owner) DO UPDATE SET blocked = excluded.blocked
                """, [.text(owner.text), .bool(isBlocked)])
            // Other nodes keep the owner for some seconds.
            try db.notify(.owner(owner))
        }
    }
}

extension PostgresStore {
    package func quota(of owner: OwnerID, within quota: QuotaLimits) async throws -> OwnerQuota {
        try await single { db in try db.quota(of: owner, within: quota) }
    }
}

extension PostgresStore: QuotaRepair {
    package func repairQuota(of owner: OwnerID) async throws {
        try await write(of: owner) { db in try db.repairQuota(of: owner) }
    }
}

extension OwnerRecord {
    /// The columns that ``init(_:)`` reads, in order.
    fileprivate static let columns = """
        owner, max_stored_bytes, max_open_sessions, max_file_bytes, stored_bytes, reserved_bytes, \
        open_sessions, blocked
        """

    fileprivate init(_ row: PostgresRow) throws {
        var row = row
        let owner = OwnerID(try row.text())
        let limits = OwnerLimits(
            maxStoredBytes: row.optionalInteger(),
            maxOpenSessions: row.optionalInteger().map { Int(clamping: $0) },
            maxFileBytes: row.optionalInteger())
        let usage = OwnerUsage(
            storedBytes: try row.integer(), reservedBytes: try row.integer(),
            openSessions: try row.integer())
        self.init(owner: owner, limits: limits, usage: usage, isBlocked: try row.bool())
    }
}
