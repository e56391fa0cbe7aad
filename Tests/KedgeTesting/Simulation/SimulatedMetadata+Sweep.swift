package import KedgeEngine
package import KedgeModel

extension SimulatedMetadata {
    package func isKnown(_ key: StagingKey) async throws -> Bool {
        try read { rows in
            rows.garbage[.staging(key)] != nil
                || rows.sessions.values.contains { $0.hasStaging && $0.record.stagingKey == key }
        }
    }

    package func expireSessions(
        now: Timestamp, graceEnd: Timestamp, limit: Int
    ) async throws -> [SessionID] {
        try write { rows in
            let over = rows.sessions.values
                .filter {
                    $0.record.state == .open && $0.record.expiresAt <= now && $0.job == nil
                }
                .sorted { ($0.record.expiresAt, $0.number) < ($1.record.expiresAt, $1.number) }
            var changed = over.prefix(limit).map(\.record.id)
            for id in changed { rows.sessions[id]?.record.state = .expired }
            for session in rows.forgettableSessions(expiredBefore: graceEnd)
                .prefix(limit - changed.count)
            {
                let id = session.record.id
                rows.forget(session)
                if !changed.contains(id) { changed.append(id) }
            }
            let linkEnd = now.advanced(by: .zero - LinkRows.margin)
            rows.linkUses = rows.linkUses.filter { $0.value.expiresAt >= linkEnd }
            return changed
        }
    }

    package func claimGarbage(
        now: Timestamp, leaseUntil: Timestamp, limit: Int
    ) async throws -> [Garbage] {
        try write { rows in
            let claimed = rows.garbage.values
                .filter { $0.leaseUntil <= now.millisecondsSinceEpoch }
                .sorted { ($0.leaseUntil, $0.garbage.order) < ($1.leaseUntil, $1.garbage.order) }
                .prefix(limit).map(\.garbage)
            return claimed.filter { garbage in
                if case .blob(let digest) = garbage, rows.isNeeded(digest) {
                    rows.garbage[garbage.rowKey] = nil
                    return false
                }
                rows.garbage[garbage.rowKey]?.leaseUntil = leaseUntil.millisecondsSinceEpoch
                return true
            }
        }
    }

    package func forgetGarbage(
        _ garbage: Garbage, claimedUntil end: Timestamp
    ) async throws {
        try write { rows in
            guard rows.garbage[garbage.rowKey]?.leaseUntil == end.millisecondsSinceEpoch else {
                return
            }
            rows.garbage[garbage.rowKey] = nil
        }
    }

    package func addToGarbage(_ key: StagingKey) async throws {
        try write { rows in
            let isTaken = rows.sessions.values.contains {
                $0.hasStaging && $0.record.stagingKey == key
            }
            if !isTaken { rows.add(.staging(key)) }
        }
    }

    package func isNeeded(_ digest: SHA256Digest) async throws -> Bool {
        try read { $0.isNeeded(digest) }
    }
}

extension MetadataRows {
    /// Sessions that no client can continue or adopt any more, and those whose file was deleted.
    fileprivate func forgettableSessions(expiredBefore graceEnd: Timestamp) -> [Session] {
        let past = sessionsInOrder.filter { $0.record.expiresAt < graceEnd }
        let ended = past.filter { [.expired, .canceled].contains($0.record.state) }
            .sorted { ($0.record.expiresAt, $0.number) < ($1.record.expiresAt, $1.number) }
        let orphaned = past.filter { session in
            guard session.record.state == .completed, let file = session.record.fileID else {
                return false
            }
            return files[file]?.record.deletedAt != nil
        }
        return ended + orphaned
    }

    /// Forgets a session with its chunks, partials and idempotency key.
    fileprivate mutating func forget(_ session: Session) {
        let id = session.record.id
        sessions[id] = nil
        keys = keys.filter { $0.value.session != id }
        if session.record.state != .completed { linkUses[id] = nil }
        if let file = session.record.fileID { files[file]?.digests = [] }
        makeGarbage(ofBytesOf: session)
    }
}

extension Garbage {
    /// Position in a list of garbage.
    fileprivate var order: String {
        switch self {
        case .staging(let key, _): "staging \(key.text)"
        case .blob(let digest): "blob \(digest.hex)"
        }
    }
}
