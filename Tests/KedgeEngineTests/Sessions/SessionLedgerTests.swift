import KedgeEngine
import KedgeHash
import KedgeModel
import Testing

/// The ledger is a value, without clock and stores.
struct SessionLedgerTests {
    private let time = Timestamp(millisecondsSinceEpoch: 1_700_000_000_000)

    private func ledger(
        fileSize: Int64?, chunks: [Int] = [], partials: [Int: Int64] = [:]
    ) -> SessionLedger {
        let id = SessionID.random()
        let record = SessionRecord(
            id: id, owner: .tester, stagingKey: StagingKey(id), fileName: "a", mimeType: nil,
            fileSize: fileSize, chunkSize: 100, declaredDigest: nil, metadata: [:], state: .open,
            createdAt: time, expiresAt: time)
        return SessionLedger(
            SessionProgress(
                record: record, chunks: chunks.map { chunk($0, fileSize) },
                partials: partials.map { partial($0.key, $0.value) }))
    }

    private func chunk(_ index: Int, _ fileSize: Int64? = nil) -> CommittedChunk {
        let end = min(Int64(index + 1) * 100, fileSize ?? .max)
        return CommittedChunk(
            index: index, byteCount: end - Int64(index) * 100,
            digest: SHA256Hasher.digest(of: [UInt8(index)]))
    }

    private func partial(_ index: Int, _ byteCount: Int64) -> PartialRecord {
        PartialRecord(index: index, byteCount: byteCount, hashState: [1], declaredDigest: nil)
    }

    @Test(
        arguments: [
            ([], [:], 0, 0), ([0], [:], 100, 100), ([1], [:], 0, 0), ([0, 1, 2], [:], 250, 250),
            ([0], [1: 30], 100, 130),
            ([0], [2: 30], 100, 100), ([], [0: 30], 0, 30), ([0, 2], [1: 30], 100, 130),
            ([0, 1], [2: 49], 200, 249),
        ] as [([Int], [Int: Int64], Int64, Int64)])
    func `offsets end at the first gap`(
        chunks: [Int], partials: [Int: Int64], prefixEnd: Int64, offset: Int64
    ) {
        let ledger = ledger(fileSize: 250, chunks: chunks, partials: partials)
        #expect(ledger.committedPrefixEnd == prefixEnd)
        #expect(ledger.contiguousOffset == offset)
        let bytes = chunks.map { chunk($0, 250).byteCount }.reduce(0, +)
        #expect(ledger.committedByteCount == bytes)
        #expect(ledger.receivedByteCount == bytes + partials.values.reduce(0, +))
        #expect(ledger.isComplete == (chunks.count == 3))
    }

    @Test func `a session of unknown size is never complete and misses nothing yet`() {
        var ledger = ledger(fileSize: nil, chunks: [0, 1])
        #expect(!ledger.isComplete)
        #expect(ledger.missing == [])
        #expect(ledger.contiguousOffset == 200)
        ledger.declareSize(350)
        #expect(ledger.missing == [2...3])
        #expect(ledger.status.totalChunks == 4)
    }

    @Test func `an empty file is complete from the start`() {
        let ledger = ledger(fileSize: 0)
        #expect(ledger.isComplete)
        #expect(ledger.missing == [])
        #expect(ledger.committedPrefixEnd == 0)
        #expect(ledger.contiguousOffset == 0)
    }

    @Test func `a committed chunk removes its partial, and a late partial is ignored`() {
        var ledger = ledger(fileSize: 250, partials: [0: 30, 1: 40])
        ledger.insert(chunk(0))
        #expect(ledger.partials.keys.sorted() == [1])
        ledger.setPartial(partial(0, 50))
        #expect(ledger.partials.keys.sorted() == [1])
        ledger.removePartial(1)
        #expect(ledger.receivedByteCount == 100)
    }

    @Test func `a chunk counts once, with its first digest`() {
        var ledger = ledger(fileSize: 250, chunks: [0])
        var other = chunk(0)
        other.digest = SHA256Hasher.digest(of: [99])
        ledger.insert(other)
        #expect(ledger.committedByteCount == 100)
        #expect(ledger.digest(ofChunk: 0) == SHA256Hasher.digest(of: [0]))
        #expect(ledger.digest(ofChunk: 1) == nil)
    }

    @Test func `the file id shows only once the session is completed`() {
        var ledger = ledger(fileSize: 100, chunks: [0])
        let id = FileID.random()
        let digest = SHA256Hasher.digest(of: [1])
        ledger.finalize(digest: digest, fileID: id)
        #expect(ledger.status.state == .finalizing)
        #expect(ledger.status.remoteFileId == nil)
        #expect(ledger.status.fileHashSha256 == digest)
        ledger.setState(.completed)
        #expect(ledger.status.remoteFileId == id)
    }
}
