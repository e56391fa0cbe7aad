import KedgeDisk
import KedgeEngine
import KedgeFiles
import KedgeModel
import KedgeSQLite
import KedgeTesting
import Testing

/// Paths at which a test plants damage, and checks of a stopped environment.
extension EngineEnvironment {
    var databasePath: String { directory.path + "/kedge.sqlite" }

    func stagingPath(_ upload: Upload) -> String { stagingPath(StagingKey(upload.id)) }

    func stagingPath(_ key: StagingKey) -> String {
        "\(dataPath)/staging/\(key.text.prefix(2))/\(key)"
    }

    func blobPath(_ digest: SHA256Digest) -> String {
        let hex = digest.hex
        return "\(dataPath)/blobs/\(hex.prefix(2))/\(hex.dropFirst(2).prefix(2))/\(hex)"
    }

    func quarantinePath(_ name: String) -> String { "\(dataPath)/quarantine/\(name)" }

    /// Checks without changes, through a copy of the database, as the command does without
    /// `--repair`.
    ///
    /// - Parameters:
    ///   - scrubbing: Whether all bytes are read back, too.
    ///   - altering: Changes the chunk rows that the check sees.
    func check(
        scrubbing: Bool = false, altering: @escaping AlteredRows.Change = { $1 }
    ) async throws -> [CheckFinding] {
        let pool = BlockingPool(threadCount: 2)
        let inspection = try await DiskInspection.open(dataPath, pool: pool, fileSystem: disk)
        let copy = try await DatabaseCopy.make(of: databasePath, pool: pool)
        let findings = try await run(scrubbing: scrubbing, pool: pool) { scrubber, tally in
            StoreCheck(
                rows: AlteredRows(real: copy.store, change: altering), bytes: inspection,
                scrubber: scrubber, tally: tally)
        }
        try await inspection.confirmUndisturbed()
        await copy.close()
        await inspection.close()
        return findings
    }

    /// Repairs what can be repaired.
    func repair(scrubbing: Bool = true) async throws -> [CheckFinding] {
        let pool = BlockingPool(threadCount: 2)
        let bytes = try await DiskStore.open(
            dataPath, pool: pool, fileSystem: disk, reserveByteCount: 0)
        let metadata = try await SQLiteStore.open(
            at: databasePath, now: clock.now(), pool: pool
        ) { Issue.record("the database failed for good: \($0)") }
        let findings = try await run(scrubbing: scrubbing, pool: pool) { scrubber, tally in
            StoreCheck(
                rows: metadata, bytes: bytes.inspection,
                repairs: RepairedStores(metadata: metadata, bytes: bytes), scrubber: scrubber,
                tally: tally)
        }
        try await metadata.close()
        await bytes.close()
        return findings
    }

    private func run(
        scrubbing: Bool, pool: BlockingPool, _ make: (ByteScrubber?, CheckTally) -> StoreCheck
    ) async throws -> [CheckFinding] {
        let findings = Shared<[CheckFinding]>([])
        let tally = CheckTally { finding in findings.update { $0.append(finding) } }
        // Small, so that a chunk is several buffers.
        let scrubber = ByteScrubber(pool: pool, bytesPerSecond: nil, bufferCapacity: 300)
        try await make(scrubbing ? scrubber : nil, tally).run()
        let faults = findings.value.filter { !$0.isNotice }
        #expect(tally.summary.findingCount == faults.count)
        #expect(tally.summary.isClean == faults.areRepaired)
        return findings.value
    }
}

/// Rows of a database, with chunk rows that a test has changed.
struct AlteredRows: CheckedRows {
    typealias Change = @Sendable (SessionID, [CommittedChunk]) -> [CommittedChunk]

    let real: any CheckedRows
    let change: Change

    func databaseFaults() async throws -> [CheckFinding] { try await real.databaseFaults() }
    func byteStoreIdentity() async throws -> String? { try await real.byteStoreIdentity() }
    func promisedByteCount() async throws -> Int64 { try await real.promisedByteCount() }

    func sessionsWithBytes(after: SessionID?, limit: Int) async throws -> [SessionRecord] {
        try await real.sessionsWithBytes(after: after, limit: limit)
    }

    func sessionWithBytes(_ id: SessionID) async throws -> SessionRecord? {
        try await real.sessionWithBytes(id)
    }

    func chunks(of id: SessionID, from index: Int, limit: Int) async throws -> [CommittedChunk] {
        change(id, try await real.chunks(of: id, from: index, limit: limit))
    }

    func partials(of id: SessionID, from index: Int, limit: Int) async throws -> [PartialRecord] {
        try await real.partials(of: id, from: index, limit: limit)
    }

    func liveFiles(after: FileRecord?, limit: Int) async throws -> [FileRecord] {
        try await real.liveFiles(after: after, limit: limit)
    }

    func liveFile(_ id: FileID) async throws -> FileRecord? { try await real.liveFile(id) }

    func isKnown(_ bytes: StoredBytes) async throws -> Bool { try await real.isKnown(bytes) }

    func quotaDrifts(after: OwnerID?, limit: Int) async throws -> [QuotaDrift] {
        try await real.quotaDrifts(after: after, limit: limit)
    }
}

/// Damage to files.
enum Damage {
    private static let files = POSIXFileSystem()

    /// Inverts one byte.
    static func flip(_ path: String, at offset: Int64) throws {
        let file = try files.open(path, .readWrite)
        let buffer = SampleBytes.buffer(capacity: 1)
        try buffer.fillFree { try file.read(into: $0, at: offset) }
        try [~buffer.bytes[0]].withUnsafeBytes { try file.write($0, at: offset) }
        try file.close()
    }

    static func cut(_ path: String, to byteCount: Int64) throws {
        let file = try files.open(path, .readWrite)
        try file.truncate(to: byteCount)
        try file.close()
    }

    /// Makes a file with its directories.
    static func plant(_ path: String, below root: String, _ content: [UInt8]) throws {
        var directory = root
        let names = path.dropFirst(root.count).split(separator: "/")
        for name in names.dropLast() {
            directory += "/\(name)"
            try files.makeDirectory(directory)
        }
        let file = try files.open(path, .createNew)
        try content.withUnsafeBytes { try file.write($0, at: 0) }
        try file.close()
    }

    static func content(_ path: String) throws -> [UInt8]? {
        guard let status = try files.status(of: path) else { return nil }
        let buffer = SampleBytes.buffer(capacity: Int(status.byteCount) + 1)
        try buffer.fillFree { try files.open(path, .read).read(into: $0, at: 0) }
        return Array(buffer.bytes)
    }
}

extension [CheckFinding] {
    var kinds: [CheckFinding.Kind] { map(\.kind) }
    var ids: [String] { map(\.id) }
    var areRepaired: Bool { allSatisfy(\.isRepaired) }
    var areNotices: Bool { allSatisfy(\.isNotice) }
    var hasRepairs: Bool { contains(where: \.isRepaired) }
}
