internal import KedgeEngine
internal import KedgeModel
internal import Testing

/// An upload whose bytes come in pieces of any length, some of them twice, while areas and stores
/// are closed and opened. It counts the bytes of each chunk that the store has.
struct ByteWalk {
    private struct Chunk {
        var byteCount: Int
        /// Bytes written in this area, or saved before.
        var written = 0
        /// Bytes in a partial.
        var saved = 0
        /// Where this area's bytes begin. The bytes before were saved in another area.
        var atHand = 0
        var location: String?
        var isDone = false
    }

    private static let stepCount = 40

    private let open: ByteStoreConformance.Case.Opener
    private var random: SplitMix64
    private var upload: StagedUpload
    private var chunks: [Chunk]
    private var store: any ByteStore
    private var area: any StagingArea

    init(
        seed: UInt64, byteCount: Int, _ open: @escaping ByteStoreConformance.Case.Opener
    ) async throws {
        self.open = open
        random = SplitMix64(seed: seed)
        let upload = StagedUpload(byteCount: byteCount)
        self.upload = upload
        chunks = (0..<upload.chunkCount).map { Chunk(byteCount: Int(upload.range($0).byteCount)) }
        store = try await open()
        area = try await store.openStaging(upload.key)
    }

    /// Goes from the first byte to the removal of the last.
    mutating func run() async throws {
        for _ in 0..<Self.stepCount { try await step() }
        for index in chunks.indices where !chunks[index].isDone {
            try await write(index, chunks[index].byteCount - chunks[index].written)
            try await save(index)
        }
        try await assembleAndRead()
        try await promoteAndRead()
        await store.close()
    }

    private mutating func step() async throws {
        let index = Int.random(in: chunks.indices, using: &random)
        let rest = chunks[index].byteCount - chunks[index].written
        switch Int.random(in: 0..<10, using: &random) {
        case ..<4: if rest > 0 { try await write(index, Int.random(in: 1...rest, using: &random)) }
        case 4: try await writeAgain(index)
        case 5, 6: try await savePartial(index)
        case 7: try await read(index)
        case 8: if rest == 0 { try await save(index) }
        default: try await reopen(withStore: Bool.random(using: &random))
        }
    }
}

// The steps.
extension ByteWalk {
    private mutating func write(_ index: Int, _ byteCount: Int) async throws {
        guard byteCount > 0 else { return }
        let start = chunks[index].written
        try await upload.write(start..<start + byteCount, ofChunk: index, to: area)
        chunks[index].written += byteCount
    }

    /// Repeats a write, as a client does whose answer was lost.
    private mutating func writeAgain(_ index: Int) async throws {
        let chunk = chunks[index]
        guard chunk.written > 0, !chunk.isDone else { return }
        let start = Int.random(in: 0..<chunk.written, using: &random)
        try await upload.write(start..<chunk.written, ofChunk: index, to: area)
    }

    private mutating func savePartial(_ index: Int) async throws {
        let chunk = chunks[index]
        let end = min(chunk.written, chunk.byteCount - 1)
        guard end > chunk.saved, !chunk.isDone else { return }
        let byteCount = Int.random(in: chunk.saved + 1...end, using: &random)
        chunks[index].location = try await area.savePartial(
            upload.range(index, byteCount: byteCount), after: chunk.location)
        chunks[index].saved = byteCount
    }

    private mutating func save(_ index: Int) async throws {
        guard !chunks[index].isDone else { return }
        try await upload.saveWritten(index, in: area, after: chunks[index].location)
        chunks[index].isDone = true
        chunks[index].atHand = chunks[index].byteCount
    }

    /// Opens the area again, which loses all bytes that were not saved.
    private mutating func reopen(withStore: Bool) async throws {
        await area.close()
        if withStore {
            await store.close()
            store = try await open()
        }
        area = try await store.openStaging(upload.key)
        for index in chunks.indices where !chunks[index].isDone {
            chunks[index].written = chunks[index].saved
            chunks[index].atHand = chunks[index].saved
        }
    }

    private mutating func read(_ index: Int) async throws {
        let chunk = chunks[index]
        guard chunk.written > 0 else { return }
        let start = Int.random(in: 0..<chunk.written, using: &random)
        let end = min(start + 1000, chunk.written)
        let mayRefuse = store.traits.needsAssembly && start < chunk.atHand
        do {
            try await expectBytes(Int(upload.range(index).start) + start, end - start)
        } catch ByteStoreError.notAssembled where mayRefuse {
            // The bytes can be read once the file is assembled.
        }
    }

    private func expectBytes(_ offset: Int, _ count: Int) async throws {
        let found = try await area.bytes(at: Int64(offset), count: count)
        #expect(found == Array(upload.content[offset..<offset + count]), "from \(offset)")
    }
}

// Steps after the last chunk.
extension ByteWalk {
    private mutating func assembleAndRead() async throws {
        try await store.assemble(upload.file)
        try await reopen(withStore: true)
        for _ in 0..<5 {
            let offset = Int.random(in: upload.content.indices, using: &random)
            try await expectBytes(offset, min(1000, upload.content.count - offset))
        }
        await area.close()
    }

    private mutating func promoteAndRead() async throws {
        let name = try await upload.promote(in: store)
        #expect(try await upload.promote(in: store) == name)
        try await store.removeStaging(upload.key, state: nil, keeping: name.location)
        #expect(try await store.content(of: name) == upload.content)
        try await store.removeBlob(name.digest)
        try await store.removeStaging(upload.key, state: nil, keeping: nil)
        let store = store
        await #expect(throws: ByteStoreError.notFound) { try await store.content(of: name) }
    }
}
