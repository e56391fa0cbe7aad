package import KedgeEngine
package import KedgeModel

extension SimulatedMetadata {
    package func takeFinalize(
        of id: SessionID, expecting expected: SHA256Digest?, lease: WorkLease
    ) async throws -> Bool {
        try write { rows in
            var session = try rows.session(id, in: .open, .finalizing)
            if let job = session.job, job.holder != lease.holder,
                job.leaseUntil > lease.now.millisecondsSinceEpoch
            {
                return false
            }
            session.job = MetadataRows.Job(
                expected: expected ?? session.job?.expected, holder: lease.holder,
                leaseUntil: lease.until.millisecondsSinceEpoch)
            session.record.expiresAt = max(session.record.expiresAt, lease.until)
            rows.sessions[id] = session
            return true
        }
    }

    package func renewFinalize(of id: SessionID, lease: WorkLease) async throws {
        try write { rows in
            guard var session = rows.sessions[id], session.job?.holder == lease.holder else {
                return
            }
            session.job?.leaseUntil = lease.until.millisecondsSinceEpoch
            session.record.expiresAt = max(session.record.expiresAt, lease.until)
            rows.sessions[id] = session
        }
    }

    package func discardFinalize(of id: SessionID, by lease: WorkLease) async throws {
        try write { rows in
            guard let job = rows.sessions[id]?.job else { return }
            let isFree = job.leaseUntil <= lease.now.millisecondsSinceEpoch
            if isFree || job.holder == lease.holder { rows.sessions[id]?.job = nil }
        }
    }

    package func takeAbandonedFinalizes(
        lease: WorkLease, limit: Int
    ) async throws -> [FinalizeJob] {
        try write { rows in
            let abandoned = rows.sessionsInOrder.filter { session in
                guard let job = session.job else { return session.record.state == .finalizing }
                return job.leaseUntil <= lease.now.millisecondsSinceEpoch
            }
            return abandoned.prefix(limit).map { session in
                let job = MetadataRows.Job(
                    expected: session.job?.expected, holder: lease.holder,
                    leaseUntil: lease.until.millisecondsSinceEpoch)
                var kept = session
                kept.job = job
                kept.record.expiresAt = max(kept.record.expiresAt, lease.until)
                rows.sessions[session.record.id] = kept
                return FinalizeJob(record: kept.record, expected: job.expected)
            }
        }
    }

    package func savePrefix(
        _ prefix: HashCheckpoint, of id: SessionID, knowing revision: Int64?
    ) async throws {
        try write { rows in
            var session = try rows.session(id, in: .open, .finalizing)
            session.advance(to: prefix)
            try session.requireFittingPrefix()
            rows.sessions[id] = session
        }
    }

    package func stagingState(of key: StagingKey) async throws -> String? {
        try read { $0.session(withBytes: key)?.stagingState }
    }

    package func setStagingState(
        _ state: String?, of key: StagingKey, replacing expected: String?
    ) async throws -> String? {
        try write { rows in
            guard var session = rows.session(withBytes: key) else { throw MetadataError.notFound }
            if session.stagingState == expected { session.stagingState = state }
            rows.sessions[session.record.id] = session
            return session.stagingState
        }
    }

    package func bind(toBytesAt identity: String) async throws {
        try write { rows in
            let bound = rows.byteStoreIdentity ?? identity
            rows.byteStoreIdentity = bound
            guard bound == identity else { throw MetadataError.foreignBytes(bound) }
        }
    }
}

extension MetadataRows {
    fileprivate func session(withBytes key: StagingKey) -> Session? {
        sessions.values.first { $0.hasStaging && $0.record.stagingKey == key }
    }
}
