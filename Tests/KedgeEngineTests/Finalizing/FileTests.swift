import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct FileTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    private func blobPath(_ digest: SHA256Digest) -> String {
        let hex = digest.hex
        let parent = "\(fixture.dataPath)/blobs/\(hex.prefix(2))/\(hex.dropFirst(2).prefix(2))"
        return "\(parent)/\(hex)"
    }

    private func blobExists(_ digest: SHA256Digest) throws -> Bool {
        try POSIXFileSystem().status(of: blobPath(digest)) != nil
    }

    /// R4, R81, R111: two files refer to one blob.
    @Test func `the same bytes are stored once`() async throws {
        let node = try await fixture.start()
        let first = try await node.file(sampleBytes(2500))
        let second = try await node.file(sampleBytes(2500), owner: .stranger)
        #expect(first.id != second.id)
        #expect(first.digest == second.digest)
        #expect(try await node.bytes.stagingKeys() == [])
        // The earlier copy stays until the scrub has read the later one.
        let copies = "\(fixture.dataPath)/superseded"
        #expect(try POSIXFileSystem().list(copies).count == 1)
        try await node.scrubAll()
        #expect(try POSIXFileSystem().list(copies) == [])
        #expect(try await node.content(of: first) == sampleBytes(2500))
    }

    @Test func `the same bytes finished at once are stored once`() async throws {
        let node = try await fixture.start()
        var uploads: [Upload] = []
        for _ in 0..<8 {
            let upload = try await node.begin(sampleBytes(1500))
            try await node.putAll(of: upload)
            uploads.append(upload)
        }
        let files = try await withThrowingTaskGroup(of: FileRecord.self) { group in
            for upload in uploads { group.addTask { try await node.finish(upload) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(files.map(\.id)).count == 8)
        #expect(try await node.bytes.stagingKeys() == [])
        for file in files { #expect(try await node.content(of: file) == sampleBytes(1500)) }
    }

    /// R81.
    @Test func `deleting one of two files keeps the bytes, deleting both frees them`() async throws
    {
        let node = try await fixture.start()
        let first = try await node.file(sampleBytes(2500))
        let second = try await node.file(sampleBytes(2500))
        try await node.engine.deleteFile(first.id, owner: .tester)
        #expect(try await node.content(of: second) == sampleBytes(2500))
        try await node.engine.deleteFile(second.id, owner: .tester)
        #expect(try !blobExists(second.digest))
    }

    @Test(arguments: [false, true])
    func `a deleted file is gone for good, and deleting it again does nothing`(
        afterRestart: Bool
    ) async throws {
        var node = try await fixture.start()
        let file = try await node.file(sampleBytes(2500))
        try await node.engine.deleteFile(file.id, owner: .tester)
        if afterRestart { node = try await node.restart() }
        await #expect(throws: EngineError(.fileGone)) {
            try await node.engine.file(file.id, owner: .tester)
        }
        try await node.engine.deleteFile(file.id, owner: .tester)
        #expect(try await node.engine.files(of: .tester, after: nil, limit: 9) == [])
    }

    @Test func `bytes uploaded again after a deletion are stored again`() async throws {
        let node = try await fixture.start()
        let first = try await node.file(sampleBytes(2500))
        try await node.engine.deleteFile(first.id, owner: .tester)
        let second = try await node.file(sampleBytes(2500))
        #expect(second.id != first.id)
        try await node.engine.sweep()
        #expect(try await node.content(of: second) == sampleBytes(2500))
    }

    @Test func `an open file stays readable when it is deleted`() async throws {
        let node = try await fixture.start()
        let file = try await node.file(sampleBytes(200))
        let opened = try await node.engine.openFile(file)
        try await node.engine.deleteFile(file.id, owner: .tester)
        #expect(try !blobExists(file.digest))
        let bytes = try await node.engine.read(opened, at: 100, upTo: 50) { Array($0) }
        #expect(bytes == Array(sampleBytes(200)[100..<150]))
        await opened.reader.close()
    }

    @Test func `an unknown file is not found`() async throws {
        let node = try await fixture.start()
        await #expect(throws: EngineError(.fileNotFound)) {
            try await node.engine.file(.random(), owner: .tester)
        }
        await #expect(throws: EngineError(.fileNotFound)) {
            try await node.engine.deleteFile(.random(), owner: .tester)
        }
    }

    @Test func `files are listed newest first, page by page`() async throws {
        let node = try await fixture.start()
        var made: [FileRecord] = []
        for seed in 1...5 as ClosedRange<UInt64> {
            made.append(try await node.file(sampleBytes(10, seed: seed)))
            // Two of them were made at the same instant.
            if seed != 3 { fixture.clock.advance(by: .seconds(1)) }
        }
        var listed: [FileRecord] = []
        while true {
            let cursor = listed.last.map { FileCursor(createdAt: $0.createdAt, id: $0.id) }
            let page = try await node.engine.files(of: .tester, after: cursor, limit: 2)
            if page.isEmpty { break }
            #expect(page.count <= 2)
            listed += page
        }
        #expect(Set(listed) == Set(made))
        #expect(listed.count == made.count)
        #expect(listed.map(\.createdAt) == made.map(\.createdAt).sorted(by: >))
    }

    @Test func `one request with a complete body makes a file`() async throws {
        let node = try await fixture.start()
        let content = sampleBytes(2500)
        let new = NewSession(fileName: "a", fileSize: nil)
        let digest = SHA256Hasher.digest(of: content)
        let file = try await node.engine.ingest(
            new, owner: .tester, expecting: digest, body: ScriptedBody(content))
        #expect(file.digest == digest)
        #expect(try await node.content(of: file) == content)
        let empty = try await node.engine.ingest(
            new, owner: .tester, expecting: nil, body: ScriptedBody([]))
        #expect(empty.byteCount == 0)
    }

    @Test(arguments: [ScriptedBody.Ending.ends, .breaksOff])
    func `a failed request with a complete body leaves nothing behind`(ending: ScriptedBody.Ending)
        async throws
    {
        let node = try await fixture.start()
        await #expect(throws: EngineError.self) {
            try await node.engine.ingest(
                NewSession(fileName: "a", fileSize: nil), owner: .tester,
                expecting: SHA256Hasher.digest(of: [1]),
                body: ScriptedBody(sampleBytes(2500), ending: ending))
        }
        #expect(try await node.engine.files(of: .tester, after: nil, limit: 9) == [])
        #expect(try await node.metadata.unfinishedSessions() == [])
        #expect(try await node.bytes.stagingKeys() == [])
    }
}
