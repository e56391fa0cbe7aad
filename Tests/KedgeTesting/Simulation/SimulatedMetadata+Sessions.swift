package import KedgeEngine
package import KedgeModel

extension SimulatedMetadata {
    package func createSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?,
        in room: SessionRoom?
    ) async throws -> CreateOutcome {
        do {
            return try insertSession(
                record, idempotencyKey: idempotencyKey, adopting: adopting, in: room)
        } catch MetadataError.quotaExceeded(let refusal) {
            return .quotaExceeded(refusal)
        }
    }

    private func insertSession(
        _ record: SessionRecord, idempotencyKey: IdempotencyKey?, adopting: SessionID?,
        in room: SessionRoom?
    ) throws -> CreateOutcome {
        try write { rows in
            let key = idempotencyKey.map { MetadataRows.Key(owner: record.owner, key: $0.key) }
            if let key, let use = rows.keys[key], let earlier = rows.sessions[use.session] {
                let isSame = use.fingerprint == idempotencyKey?.fingerprint
                return isSame ? .replayed(earlier.record) : .keyConflict
            }
            if let link = room?.link, let outcome = rows.outcome(of: link, for: record) {
                return outcome
            }
            guard rows.sessions[record.id] == nil else {
                throw MetadataError.failed("session \(record.id) is there already")
            }
            let adopted = adopting.flatMap { rows.sessions[$0] }
            let isReplacing =
                adopted.map { $0.record.state == .open && $0.canBeAdopted(by: record) } ?? false
            let sourceIDs = room == nil ? [] : record.sourceIDs ?? []
            let isUsedUp = sourceIDs.contains { id in
                room.map { rows.sessions[id]?.concatenationCount ?? 0 >= $0.maxConcatenationCount }
                    ?? false
            }
            if isUsedUp { return .sourceUsedUp }
            var ended: SessionID?
            if let room, !isReplacing, rows.openCount >= room.maxOpenCount {
                ended = rows.makeRoom(besides: room.busy)
                if ended == nil { return .full }
            }
            let created = try rows.insert(record, adopting: adopting)
            rows.sessions[created.id]?.client = room?.client
            rows.linkUses[created.id] = room?.link
            for id in sourceIDs { rows.sessions[id]?.concatenationCount += 1 }
            if let key, let fingerprint = idempotencyKey?.fingerprint {
                rows.keys[key] = .init(fingerprint: fingerprint, session: created.id)
            }
            if let room {
                let quota = rows.quota(of: record.owner, within: room.quota)
                let reservation = rows.sessions[created.id]?.reservation ?? 0
                if isReplacing {
                    try quota.requireRoom(
                        forFileOf: reservation,
                        growth: reservation - (adopted?.reservation ?? 0))
                } else {
                    try quota.requireRoom(forNewSessionOf: reservation)
                }
            }
            return ended.map { .createdInstead(created, of: $0) } ?? .created(created)
        }
    }

    package func progress(of id: SessionID, owner: OwnerID) async throws -> SessionProgress? {
        try read { rows in
            rows.sessions[id].flatMap { $0.record.owner == owner ? $0.progress : nil }
        }
    }

    package func unfinishedSessions(
        of owner: OwnerID, after cursor: SessionCursor?, limit: Int
    ) async throws -> [UnfinishedUpload] {
        try read { rows in
            let listed = rows.sessions.values
                .filter {
                    $0.record.owner == owner && [.open, .finalizing].contains($0.record.state)
                }
                .sorted {
                    ($0.record.createdAt, $0.record.id.text)
                        > ($1.record.createdAt, $1.record.id.text)
                }
            let rest = listed.drop { session in
                guard let cursor else { return false }
                return (session.record.createdAt, session.record.id.text)
                    >= (cursor.createdAt, cursor.id.text)
            }
            return rest.prefix(limit).map { session in
                let progress = session.progress
                let partials = progress.partials.filter { !$0.isRival }
                return UnfinishedUpload(
                    record: progress.record,
                    receivedByteCount: progress.chunks.reduce(0) { $0 + $1.byteCount }
                        + partials.reduce(0) { $0 + $1.byteCount })
            }
        }
    }

    package func quota(of owner: OwnerID, within quota: QuotaLimits) async throws -> OwnerQuota {
        try read { rows in rows.quota(of: owner, within: quota) }
    }

    package func declareSize(
        _ byteCount: Int64, of id: SessionID, within quota: QuotaLimits
    ) async throws {
        try write { rows in
            var session = try rows.session(id)
            guard session.record.fileSize != byteCount else { return }
            guard session.record.fileSize == nil, session.record.state == .open else {
                throw MetadataError.wrongState(session.record.state)
            }
            guard session.claimedEnd <= byteCount else {
                throw MetadataError.failed("more bytes were received than the size declares")
            }
            let (min, max) = (session.record.minByteCount, session.record.maxByteCount)
            guard byteCount >= min ?? 0, byteCount <= max ?? .max else {
                throw MetadataError.failed("the session does not permit this size")
            }
            let before = session.reservation
            session.record.fileSize = byteCount
            session.reservedBytes = nil
            try session.requireFittingPrefix()
            rows.sessions[id] = session
            try rows.quota(of: session.record.owner, within: quota)
                .requireRoom(forFileOf: byteCount, growth: byteCount - before)
        }
    }

    package func cancelSession(_ id: SessionID, owner: OwnerID) async throws {
        try write { rows in
            let session = try rows.session(id)
            guard session.record.owner == owner else { throw MetadataError.notFound }
            guard session.record.state != .completed else {
                throw MetadataError.wrongState(.completed)
            }
            guard session.record.state != .canceled else { return }
            var ended = session
            ended.giveUpBytes()
            ended.chunks = [:]
            ended.record.state = .canceled
            ended.record.fileID = nil
            ended.record.finalDigest = nil
            rows.sessions[id] = ended
            rows.makeGarbage(ofBytesOf: session)
        }
    }

    package func openConcatenations(
        after: SessionID?, limit: Int
    ) async throws -> [SessionRecord] {
        try read { rows in
            let open = rows.sessions.values.map(\.record).filter {
                $0.sourceIDs != nil && $0.state == .open && $0.id.text > after?.text ?? ""
            }
            return Array(open.sorted { $0.id.text < $1.id.text }.prefix(limit))
        }
    }

    package func unfinishedSessions() async throws -> [UnfinishedSession] {
        try read { rows in
            rows.sessionsInOrder.filter { [.open, .finalizing].contains($0.record.state) }
                .map { UnfinishedSession(record: $0.record, claimedEnd: $0.claimedEnd) }
        }
    }

    package func commit(
        _ chunks: [CommittedChunk], touching touch: SessionUpdate
    ) async throws -> [ChunkOutcome] {
        try write { rows in
            var session = try rows.session(touch.id, in: .open)
            var outcomes: [ChunkOutcome] = []
            var new: [CommittedChunk] = []
            for chunk in chunks {
                switch session.chunks[chunk.index]?.digest {
                case nil:
                    session.chunks[chunk.index] = chunk
                    new.append(chunk)
                    outcomes.append(.committed)
                case chunk.digest: outcomes.append(.alreadyCommitted)
                case .some(let digest): outcomes.append(.conflict(stored: digest))
                }
            }
            let hasConflict = outcomes.contains { if case .conflict = $0 { true } else { false } }
            if hasConflict { return outcomes }
            for chunk in new { try session.requireFitting(chunk) }
            for chunk in chunks {
                session.partials[chunk.index] = nil
                session.rivals[chunk.index] = nil
            }
            rows.sessions[touch.id] = session
            let end = new.map { session.end(of: $0.index, $0.byteCount) }.max() ?? 0
            try rows.reserve(upTo: end, for: touch.id, within: touch.quota)
            try rows.touch(touch)
            return outcomes
        }
    }

    package func savePartial(
        _ partial: PartialRecord, touching touch: SessionUpdate
    ) async throws {
        try write { rows in
            let session = try rows.session(touch.id, in: .open)
            if session.chunks[partial.index] == nil {
                try session.requireFitting(partial)
                if partial.isRival {
                    rows.sessions[touch.id]?.rivals[partial.index] = partial
                } else {
                    rows.sessions[touch.id]?.partials[partial.index] = partial
                    let end = session.end(of: partial.index, partial.byteCount)
                    try rows.reserve(upTo: end, for: touch.id, within: touch.quota)
                }
            }
            try rows.touch(touch)
        }
    }

    package func discardPartial(
        of id: SessionID, index: Int, isRival: Bool, by writer: FencingToken?
    ) async throws {
        try write { rows in
            if isRival {
                rows.sessions[id]?.rivals[index] = nil
            } else {
                rows.sessions[id]?.partials[index] = nil
            }
        }
    }

    package func invalidateChunks(touching touch: SessionUpdate) async throws {
        try write { rows in
            var session = try rows.session(touch.id, in: .open)
            guard session.job == nil else { throw MetadataError.writerReplaced }
            session.chunks = [:]
            session.partials = [:]
            session.rivals = [:]
            session.record.prefix = nil
            session.stagingState = nil
            rows.sessions[touch.id] = session
        }
    }

    package func invalidateChunks(_ indexes: [Int], of id: SessionID) async throws {
        try write { rows in
            var session = try rows.session(id, in: .open, .finalizing)
            session.invalidate(indexes)
            rows.sessions[id] = session
        }
    }

    package func invalidateDamagedChunks(
        _ indexes: [Int], of id: SessionID, knowing revision: Int64?
    ) async throws {
        try write { rows in
            var session = try rows.session(id, in: .open)
            session.invalidate(indexes)
            rows.sessions[id] = session
        }
    }
}

extension MetadataRows {
    /// Returns the outcome of a create by a link without a use left; nil when it has one.
    fileprivate func outcome(of link: LinkUse, for record: SessionRecord) -> CreateOutcome? {
        let uses = linkUses.filter { id, use in
            let state = sessions[id]?.record.state
            return use.linkID == link.linkID
                && ![.canceled, .expired, .failed].contains(state ?? .completed)
        }
        guard uses.count >= link.maxUses else { return nil }
        guard link.maxUses == 1, let (id, use) = uses.first, use.fingerprint == link.fingerprint,
            let earlier = sessions[id]?.record, earlier.owner == record.owner
        else { return .linkUsed }
        let start = LinkUse.repetitionStart(at: record.createdAt)
        guard earlier.state == .completed else { return .replayed(earlier) }
        let completedAt = earlier.fileID.flatMap { files[$0]?.record.createdAt }
        guard let completedAt, completedAt > start else { return .linkUsed }
        return .replayed(earlier)
    }

    fileprivate var openCount: Int { sessions.values.count { $0.record.state == .open } }

    /// Forgets the oldest empty session of the client with most of them.
    fileprivate mutating func makeRoom(besides busy: Set<SessionID>) -> SessionID? {
        let empty = sessionsInOrder.filter {
            $0.isEmpty && $0.record.state == .open && $0.job == nil && !busy.contains($0.record.id)
        }
        let clients = Dictionary(grouping: empty) { $0.client }
        let largest = clients.values.min {
            ($1.count, $0[0].number) < ($0.count, $1[0].number)
        }
        guard let session = largest?.first else { return nil }
        let id = session.record.id
        sessions[id] = nil
        keys = keys.filter { $0.value.session != id }
        linkUses[id] = nil
        makeGarbage(ofBytesOf: session)
        return id
    }

    /// Inserts the session, with the bytes of the one it adopts when that one fits.
    ///
    /// - Throws: `failed` when the bytes are another session's.
    fileprivate mutating func insert(
        _ record: SessionRecord, adopting adopted: SessionID?
    ) throws -> SessionRecord {
        var new = Session(record: record, isEmpty: record.sourceIDs == nil, number: takeNumber())
        new.reservedBytes = firstReservation(of: record, adopting: nil)
        if let adopted, let old = sessions[adopted], old.canBeAdopted(by: record) {
            new.reservedBytes = firstReservation(of: record, adopting: old)
            new.record.stagingKey = old.record.stagingKey
            new.record.prefix = old.record.prefix
            new.stagingState = old.stagingState
            new.isEmpty = false
            new.chunks = old.chunks
            new.partials = old.partials
            new.rivals = old.rivals
            var emptied = old
            emptied.giveUpBytes()
            emptied.chunks = [:]
            emptied.record.state = .expired
            sessions[adopted] = emptied
        }
        let key = new.record.stagingKey
        guard !sessions.values.contains(where: { $0.hasStaging && $0.record.stagingKey == key })
        else { throw MetadataError.failed("the bytes of \(key) are another session's") }
        sessions[record.id] = new
        return new.record
    }
}

extension MetadataRows.Session {
    fileprivate mutating func invalidate(_ indexes: [Int]) {
        for index in indexes { chunks[index] = nil }
        partials = [:]
        rivals = [:]
        record.prefix = nil
        job = nil
        if chunks.isEmpty { stagingState = nil }
    }
}
