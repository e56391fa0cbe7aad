internal import KedgeEngine
internal import KedgeModel

/// Operations drawn from a seed, on sessions and files that the earlier ones made. Most of them are
/// valid. Some are repetitions, come too late, or name another owner's rows.
struct MetadataWalk {
    private var random: SplitMix64
    /// Whether the byte store of these rows names blobs by a location.
    private let hasLocations: Bool
    /// Seconds since the start of all samples.
    private var now: Int64 = 0
    private var records: [SessionRecord] = []
    private var finalizing: [SessionRecord] = []
    private var files: [FileRecord] = []
    private var claimed: [(garbage: Garbage, until: Timestamp)] = []
    /// Identifiers that an observation can query.
    private(set) var known = MetadataKnowledge()

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        hasLocations = seed.isMultiple(of: 2)
        known.digests = ["a", "b"].flatMap { content in
            Self.sizes.map { Self.digest(content, byteCount: $0) }
        }
    }

    /// Records the result of an operation.
    mutating func note(_ operation: MetadataOperation, _ answer: MetadataAnswer) {
        if case .claimGarbage(_, let until) = operation, case .garbage(let garbage) = answer {
            claimed += garbage.map { ($0, until) }
        }
        switch answer {
        case .created(let record), .createdInstead(let record, _): records.append(record)
        case .session(let record): finalizing.append(record)
        case .file(let file): files.append(file)
        default: break
        }
    }

    /// Draws the next operation, and lets time pass.
    ///
    /// - Parameter model: Has the current state of the sessions.
    mutating func next(on model: SimulatedMetadata) async throws -> MetadataOperation {
        now += Int64.random(in: 0...3, using: &random)
        // Mostly young sessions: few operations fit an old one.
        let sessions = chance(80) ? records.suffix(4) : records[...]
        guard let made = sessions.randomElement(using: &random), !chance(12) else {
            return creation()
        }
        let record = try await model.now(made)?.record ?? made
        switch Int.random(in: 0..<100, using: &random) {
        case ..<30: return commit(record)
        case ..<38: return .savePartial(partial(record), touch(record))
        case ..<40:
            return .discardPartial(record.id, index: index(), isRival: chance(30))
        case ..<43:
            let size = Self.sizes.randomElement(using: &random) ?? 0
            return .declareSize(size, record.id, within: quota())
        case ..<44: return .invalidateChunks([index(), index()], record.id)
        case ..<45: return .invalidateDamagedChunks([index(), index()], record.id)
        case ..<48: return .savePrefix(prefix(upTo: 260), record.id)
        case ..<54: return setStagingState(record)
        case ..<83: return finalize(record)
        case ..<87: return .cancel(record.id, owner(of: record))
        case ..<92: return deletion()
        default: return sweeping()
        }
    }

    /// The operations of a late sweep and recovery. They make the last hidden rows of both stores
    /// comparable: jobs, garbage and idempotency keys.
    mutating func last() -> [MetadataOperation] {
        now += 10_000
        return [.takeAbandonedFinalizes(lease()), claim()]
            + Self.keys.map { .create(session(), key: $0, adopting: nil, in: nil) }
    }
}

// The frequency of each operation.
extension MetadataWalk {
    private mutating func finalize(_ record: SessionRecord) -> MetadataOperation {
        switch Int.random(in: 0..<11, using: &random) {
        case ..<4: beginning(record)
        case ..<6: completion(record)
        case 6: chance(50) ? .reopen(record.id) : .discardFinalize(record.id, lease())
        case 7: .renewFinalize(record.id, lease())
        case 8, 9:
            .takeFinalize(
                record.id,
                expecting: chance(50) ? known.digests.randomElement(using: &random) : nil, lease())
        default: .takeAbandonedFinalizes(lease())
        }
    }

    private mutating func sweeping() -> MetadataOperation {
        switch Int.random(in: 0..<10, using: &random) {
        case ..<4: .expire(now: time(), graceEnd: time(Int64.random(in: -60...0, using: &random)))
        case ..<6: claim()
        case 6: .addToGarbage(StagingKey(known.sessions.randomElement(using: &random) ?? .random()))
        case ..<9: forgetting()
        default: .bind(chance(30) ? "there" : "here")
        }
    }

    private mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &random) < percent
    }
}

// The arguments of the operations.
extension MetadataWalk {
    private static let sizes: [Int64] = [0, 40, 100, 250]
    private static let quotas = [
        QuotaLimits(storedBytes: 400), QuotaLimits(storedBytes: 100 << 20),
        QuotaLimits(openSessions: 3), QuotaLimits(fileBytes: 100),
        QuotaLimits(storedBytes: 1000, openSessions: 5, fileBytes: 200),
    ]
    private static let keys = ["one", "two"].map { IdempotencyKey(key: $0, fingerprint: "a") }

    /// Makes a digest that depends on the number of bytes, too.
    private static func digest(_ content: String, byteCount: Int64) -> SHA256Digest {
        Sample.digest("\(content) of \(byteCount)")
    }

    private func time(_ seconds: Int64 = 0) -> Timestamp { Sample.time(now + seconds) }

    /// Draws an index, mostly one of the sample layout.
    private mutating func index() -> Int { Int.random(in: 0...3, using: &random) }

    private mutating func owner(of record: SessionRecord) -> OwnerID {
        chance(90) ? record.owner : Sample.stranger
    }

    private mutating func session() -> SessionRecord {
        let id = SessionID.random(using: &random)
        let size = chance(15) ? nil : Self.sizes.randomElement(using: &random)
        known.sessions.append(id)
        return SessionRecord(
            id: id, owner: chance(80) ? Sample.owner : Sample.stranger,
            stagingKey: StagingKey(id), fileName: "file \(known.sessions.count)",
            mimeType: chance(50) ? "text/plain" : nil, fileSize: size,
            chunkSize: Sample.chunkSize,
            declaredDigest: chance(30) ? Self.digest("a", byteCount: size ?? 0) : nil,
            metadata: chance(50) ? ["mast": "é\"\n"] : [:], state: .open, createdAt: time(),
            expiresAt: time(Int64.random(in: 1...200, using: &random)))
    }

    private mutating func creation() -> MetadataOperation {
        var key = chance(30) ? Self.keys.randomElement(using: &random) : nil
        if chance(20) { key?.fingerprint = "b" }
        let adopted = chance(40) ? known.sessions.randomElement(using: &random) : nil
        var session = session()
        if chance(10), let source = records.randomElement(using: &random) {
            session.sourceIDs = [source.id]
        }
        return .create(session, key: key, adopting: adopted, in: chance(40) ? room() : nil)
    }

    /// Draws a room, mostly a small one.
    private mutating func room() -> SessionRoom {
        let busy = chance(30) ? known.sessions.randomElement(using: &random) : nil
        return SessionRoom(
            maxOpenCount: Int.random(in: 1...8, using: &random),
            client: [nil, "192.0.2.1", "2001:db8::/64"].randomElement(using: &random) ?? nil,
            busy: Set([busy].compactMap { $0 }), quota: quota())
    }

    /// Draws limits; mostly none, so that sessions become files.
    private mutating func quota() -> QuotaLimits {
        chance(70) ? .none : Self.quotas.randomElement(using: &random) ?? .none
    }

    private mutating func touch(_ record: SessionRecord) -> SessionUpdate {
        SessionUpdate(
            id: chance(98) ? record.id : SessionID.random(using: &random),
            expiresAt: time(Int64.random(in: 1...200, using: &random)),
            prefix: chance(40) ? prefix(upTo: record.fileSize ?? 260) : nil, quota: quota())
    }

    private mutating func prefix(upTo end: Int64) -> HashCheckpoint {
        let offset = Int64.random(in: 0...end, using: &random)
        return HashCheckpoint(
            offset: offset, state: Sample.partial(0, byteCount: offset).hashState)
    }

    private mutating func partial(_ record: SessionRecord) -> PartialRecord {
        let index = index()
        let end = record.layout.range(ofChunk: index)?.byteCount ?? Sample.chunkSize
        var partial = Sample.partial(index, byteCount: Int64.random(in: 1..<end, using: &random))
        if chance(20) {
            partial.isRival = true
        } else if chance(50) {
            partial.declaredDigest = nil
            partial.isInDoubt = chance(30)
        }
        if hasLocations { partial.location = "pieces:\(partial.byteCount)" }
        return partial
    }

    /// Commits all chunks at once, so that some sessions become files, or one chunk. That one may
    /// lie outside the file, but then nothing else is wrong: stores may choose between two reasons
    /// for a refusal.
    private mutating func commit(_ record: SessionRecord) -> MetadataOperation {
        let count = record.layout.chunkCount ?? 2
        let one = index()
        let indexes = chance(50) ? Array(0..<count) : chance(20) ? [one, one] : [one]
        let text = chance(95) ? "chunk" : "other"
        return .commit(indexes.map { chunk($0, text, of: record) }, touch(record))
    }

    private func chunk(_ index: Int, _ text: String, of record: SessionRecord) -> CommittedChunk {
        CommittedChunk(
            index: index, byteCount: record.layout.range(ofChunk: index)?.byteCount ?? 50,
            digest: Sample.digest("\(text) \(index)"),
            location: hasLocations ? "part:\(index)" : nil)
    }

    private mutating func setStagingState(_ record: SessionRecord) -> MetadataOperation {
        let states = [nil, "one", "two"]
        return .setStagingState(
            states.randomElement(using: &random) ?? nil, record.stagingKey,
            replacing: states.randomElement(using: &random) ?? nil)
    }

    private mutating func beginning(_ record: SessionRecord) -> MetadataOperation {
        let digest = Self.digest(chance(70) ? "a" : "b", byteCount: record.fileSize ?? 0)
        let isTaken = chance(5)
        let id =
            isTaken ? known.files.randomElement(using: &random) : FileID.random(using: &random)
        guard let id else { return .reopen(record.id) }
        if !isTaken { known.files.append(id) }
        return .beginFinalize(record.id, digest, id, within: quota())
    }

    private mutating func completion(_ record: SessionRecord) -> MetadataOperation {
        let id = chance(80) ? finalizing.last?.id ?? record.id : record.id
        return .completeFinalize(
            id, at: time(), location: hasLocations ? "objects/\(id)" : nil)
    }

    private mutating func deletion() -> MetadataOperation {
        guard let file = files.randomElement(using: &random) else {
            return .deleteFile(.random(using: &random), Sample.owner, at: time())
        }
        return .deleteFile(file.id, chance(80) ? file.owner : Sample.stranger, at: time())
    }

    private mutating func lease() -> WorkLease {
        WorkLease(
            holder: chance(50) ? "node a" : "node b", now: time(),
            until: time(Int64.random(in: 1...40, using: &random)))
    }

    private mutating func claim() -> MetadataOperation {
        .claimGarbage(now: time(), until: time(Int64.random(in: 1...40, using: &random)))
    }

    private mutating func forgetting() -> MetadataOperation {
        guard let claim = claimed.randomElement(using: &random) else { return self.claim() }
        return .forgetGarbage(claim.garbage, claimedUntil: claim.until)
    }
}
