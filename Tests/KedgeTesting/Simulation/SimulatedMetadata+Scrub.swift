package import KedgeEngine
package import KedgeModel

extension SimulatedMetadata {
    package func supersede(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool {
        try write { rows in
            let copies = rows.supersededBlobs(of: blob.digest)
            let isSpare =
                copies.count >= 2 && !copies.contains { $0.key == blob.key }
                && rows.scrubs[blob.digest].map { $0.verifiedAt == nil } == true
            if !isSpare { rows.add(blob) }
            guard let scrub = rows.scrubs[blob.digest] else { return true }
            rows.scrubs[blob.digest] = MetadataRows.Scrub(
                byteCount: scrub.byteCount, generation: scrub.generation + 1,
                damagedAt: scrub.damagedAt, dueAt: now)
            return !isSpare
        }
    }

    package func isReleasable(_ blob: SupersededBlob, at now: Timestamp) async throws -> Bool {
        try await releasableBlobs(at: now, limit: .max).contains { $0.key == blob.key }
    }

    package func supersededBlobs(of digest: SHA256Digest) async throws -> [SupersededBlob] {
        try read { $0.supersededBlobs(of: digest) }
    }

    package func releasableBlobs(
        at now: Timestamp, limit: Int
    ) async throws -> [SupersededBlob] {
        try read { rows in
            let due = rows.superseded.filter { blob in
                let scrub = rows.scrubs[blob.digest]
                return blob.keepUntil <= now && scrub?.verifiedAt != nil && scrub?.damagedAt == nil
            }
            return Array(due.sorted { $0.keepUntil < $1.keepUntil }.prefix(limit))
        }
    }

    package func forgetSuperseded(_ blob: SupersededBlob) async throws {
        try write { $0.forget(blob) }
    }

    package func restoreSuperseded(
        _ blob: SupersededBlob, of target: ScrubTarget, lease: WorkLease, nextAt: Timestamp,
        keepUntil: Timestamp
    ) async throws -> Bool {
        try write { rows in
            guard let location = blob.location, let old = rows.blobs[blob.digest] else {
                return false
            }
            guard old.location != location else { return true }
            guard var scrub = rows.scrubs[blob.digest], scrub.generation == target.generation,
                scrub.holder == lease.holder,
                rows.superseded.contains(where: { $0.key == blob.key })
            else { return false }
            rows.superseded.removeAll { $0.key == blob.key }
            rows.add(
                SupersededBlob(
                    digest: blob.digest, byteCount: blob.byteCount, key: old.stagingKey,
                    location: old.location, keepUntil: keepUntil))
            rows.blobs[blob.digest] = MetadataRows.Blob(stagingKey: blob.key, location: location)
            scrub = MetadataRows.Scrub(
                byteCount: scrub.byteCount, generation: scrub.generation + 1,
                verifiedAt: lease.now, dueAt: nextAt)
            rows.scrubs[blob.digest] = scrub
            return true
        }
    }

    package func keepSuperseded(at locations: [String], until time: Timestamp) async throws {
        try write { rows in
            for index in rows.superseded.indices {
                guard let location = rows.superseded[index].location, locations.contains(location)
                else { continue }
                rows.superseded[index].keepUntil = max(rows.superseded[index].keepUntil, time)
            }
        }
    }

    package func claimScrub(lease: WorkLease) async throws -> ScrubTarget? {
        try write { rows in
            while let target = rows.dueScrub(at: lease.now) {
                guard rows.isNeeded(target.digest) else {
                    rows.dropScrub(of: target.digest)
                    continue
                }
                rows.scrubs[target.digest]?.holder = lease.holder
                rows.scrubs[target.digest]?.leaseUntil = lease.until.millisecondsSinceEpoch
                return target
            }
            return nil
        }
    }

    package func renewScrub(
        _ target: ScrubTarget, lease: WorkLease, checkedByteCount: Int64
    ) async throws -> Bool {
        try write { rows in
            guard let scrub = rows.scrubs[target.digest], scrub.generation == target.generation,
                scrub.holder == lease.holder
            else { return false }
            rows.scrubs[target.digest]?.leaseUntil = lease.until.millisecondsSinceEpoch
            rows.scrubs[target.digest]?.checkedByteCount = checkedByteCount
            return true
        }
    }

    package func finishScrub(
        _ target: ScrubTarget, _ result: ScrubResult, lease: WorkLease, nextAt: Timestamp
    ) async throws -> Bool {
        try write { rows in
            guard var scrub = rows.scrubs[target.digest], scrub.generation == target.generation,
                scrub.holder == lease.holder
            else { return false }
            scrub.finish(result, at: lease.now, nextAt: nextAt)
            rows.scrubs[target.digest] = scrub
            return true
        }
    }

    package func markDamaged(_ file: FileRecord, at now: Timestamp) async throws -> Bool {
        try write { rows in
            guard let scrub = rows.scrubs[file.digest], scrub.damagedAt == nil,
                rows.blobs[file.digest]?.location == file.location
            else { return false }
            rows.scrubs[file.digest] = MetadataRows.Scrub(
                byteCount: scrub.byteCount, generation: scrub.generation,
                verifiedAt: scrub.verifiedAt, damagedAt: now, dueAt: now)
            return true
        }
    }

    package func addMissingScrubs(
        after digest: SHA256Digest?, at now: Timestamp
    ) async throws -> SHA256Digest? {
        try write { rows in
            for file in rows.files.values.map(\.record)
            where file.deletedAt == nil && rows.scrubs[file.digest] == nil {
                rows.beginScrub(of: file.digest, byteCount: file.byteCount, at: now)
            }
            return nil
        }
    }

    package func scrubBacklog() async throws -> ScrubBacklog {
        try read { rows in
            let new = rows.scrubs.values.filter(\.isNew)
            return ScrubBacklog(
                newCount: new.count, oldestNew: new.map(\.dueAt).min(),
                damagedCount: rows.scrubs.values.count { $0.damagedAt != nil })
        }
    }

    package func liveFiles(
        with digest: SHA256Digest, limit: Int
    ) async throws -> [FileRecord] {
        try read { Array($0.liveFiles { $0.digest == digest }.prefix(limit)) }
    }

    package func damagedFiles(
        of owner: OwnerID, after cursor: FileCursor?, limit: Int
    ) async throws -> [FileRecord] {
        try read { rows in
            let start = cursor ?? FileCursor.beforeAll
            let listed = rows.liveFiles { file in
                file.owner == owner && file.damagedAt != nil
                    && (file.createdAt, file.id.text) < (start.createdAt, start.id.text)
            }
            return Array(listed.prefix(limit))
        }
    }
}

extension MetadataRows.Scrub {
    fileprivate mutating func finish(
        _ result: ScrubResult, at now: Timestamp, nextAt: Timestamp
    ) {
        holder = nil
        leaseUntil = 0
        switch result {
        case .right: (verifiedAt, damagedAt, checkedByteCount, dueAt) = (now, nil, 0, nextAt)
        case .damaged: (damagedAt, checkedByteCount, dueAt) = (damagedAt ?? now, 0, nextAt)
        case .undecided: leaseUntil = nextAt.millisecondsSinceEpoch
        case .interrupted: break
        }
    }

    /// Lower is more urgent.
    fileprivate var urgency: Int { isNew ? 0 : damagedAt != nil ? 1 : 2 }
}

extension MetadataRows {
    /// Files that are not deleted, newest first.
    fileprivate func liveFiles(where isWanted: (FileRecord) -> Bool) -> [FileRecord] {
        files.keys.compactMap { file($0) }
            .filter { $0.deletedAt == nil && isWanted($0) }
            .sorted { ($0.createdAt, $0.id.text) > ($1.createdAt, $1.id.text) }
    }

    fileprivate func supersededBlobs(of digest: SHA256Digest) -> [SupersededBlob] {
        superseded.filter { $0.digest == digest }.sorted {
            ($1.keepUntil, $0.key.text) < ($0.keepUntil, $1.key.text)
        }
    }

    mutating func beginScrub(of digest: SHA256Digest, byteCount: Int64, at now: Timestamp) {
        let generation = max(
            (scrubs[digest]?.generation ?? 0) + 1, now.millisecondsSinceEpoch)
        scrubs[digest] = Scrub(
            byteCount: byteCount, generation: generation, storedAt: now, dueAt: now)
    }

    mutating func dropScrub(of digest: SHA256Digest) {
        scrubs[digest] = nil
        for copy in supersededBlobs(of: digest) {
            if copy.location == nil { add(.blob(digest)) } else { forget(copy) }
        }
    }

    mutating func add(_ blob: SupersededBlob) {
        guard !superseded.contains(where: { $0.key == blob.key }) else { return }
        superseded.append(blob)
    }

    fileprivate mutating func forget(_ blob: SupersededBlob) {
        guard let index = superseded.firstIndex(where: { $0.key == blob.key }) else { return }
        superseded.remove(at: index)
        if blob.location != nil { add(.staging(blob.key)) }
    }

    fileprivate func dueScrub(at now: Timestamp) -> ScrubTarget? {
        let due = scrubs.filter {
            $0.value.dueAt <= now && $0.value.leaseUntil <= now.millisecondsSinceEpoch
        }
        let next = due.min { left, right in
            (left.value.urgency, left.value.dueAt, left.key.hex)
                < (right.value.urgency, right.value.dueAt, right.key.hex)
        }
        return next.map { digest, scrub in
            ScrubTarget(
                digest: digest, byteCount: scrub.byteCount, generation: scrub.generation,
                isNew: scrub.isNew, dueAt: scrub.dueAt,
                checkedByteCount: scrub.checkedByteCount)
        }
    }
}
