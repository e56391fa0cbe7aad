import KedgeFiles
import KedgeStoreTests
import Testing

@Suite struct `Open files` {
    private let directory: TemporaryDirectory
    private let files = POSIXFileSystem()
    private var path: String { directory.path + "/file" }

    init() throws { directory = try TemporaryDirectory() }

    @Test func `bytes are written and read at their offsets, with zeros between`() throws {
        let file = try files.open(path, .createNew)
        try file.write([1, 2, 3], at: 5)
        try file.write([9], at: 0)
        #expect(try file.bytes(at: 0, count: 8) == [9, 0, 0, 0, 0, 1, 2, 3])
        #expect(try file.status().byteCount == 8)
    }

    @Test(arguments: [(0, 3), (1, 2), (2, 1), (3, 0), (4, 0), (1 << 40, 0)] as [(Int64, Int)])
    func `a read gives fewer bytes only at the end`(offset: Int64, count: Int) throws {
        let file = try files.open(path, .createNew)
        try file.write([1, 2, 3], at: 0)
        #expect(try file.bytes(at: offset, count: 100).count == count)
    }

    @Test func `writing and reading nothing is no error`() throws {
        let file = try files.open(path, .createNew)
        try file.write([], at: 7)
        #expect(try file.bytes(at: 0, count: 0) == [])
        #expect(try file.status().byteCount == 0)
    }

    @Test func `truncating cuts, and lengthening adds zeros`() throws {
        let file = try files.open(path, .createNew)
        try file.write([1, 2, 3], at: 0)
        try file.truncate(to: 1)
        try file.truncate(to: 4)
        try file.syncData()
        #expect(try file.bytes(at: 0, count: 9) == [1, 0, 0, 0])
    }

    @Test func `a file opened for reading is not written`() throws {
        try files.open(path, .createNew).close()
        let file = try files.open(path, .read)
        #expect(throws: FileError.self) { try file.write([1], at: 0) }
        #expect(try file.status().byteCount == 0)
    }

    @Test func `a closed file refuses everything, and closing again does nothing`() throws {
        let file = try files.open(path, .createNew)
        try file.close()
        try file.close()
        #expect(throws: FileError.self) { try file.write([1], at: 0) }
        #expect(throws: FileError.self) { try file.bytes(at: 0, count: 1) }
        #expect(throws: FileError.self) { try file.syncData() }
        #expect(throws: FileError.self) { try file.truncate(to: 0) }
        #expect(throws: FileError.self) { try file.status() }
        #expect(throws: FileError.self) { try file.lockExclusively() }
    }

    @Test func `a late call on a closed file never reaches the file that has its number now`()
        throws
    {
        let first = try files.open(path, .createNew)
        try first.close()
        let second = try files.open(directory.path + "/second", .createNew)
        #expect(throws: FileError.self) { try first.write([1], at: 0) }
        #expect(try second.status().byteCount == 0)
    }

    @Test func `a descriptor goes with its last user`() throws {
        do {
            let file = try files.open(path, .createNew)
            #expect(try directory.openDescriptorCount() == 1)
            try file.write([1], at: 0)
        }
        #expect(try directory.openDescriptorCount() == 0)
    }

    @Test func `one lock holder at a time, until it closes`() throws {
        let first = try files.open(path, .openOrCreate)
        let second = try files.open(path, .openOrCreate)
        try first.lockExclusively()
        let error = #expect(throws: FileError.self) { try second.lockExclusively() }
        #expect(error?.code == .locked)
        try first.close()
        try second.lockExclusively()
    }

    @Test func `the status tells size, kind, identity and change`() throws {
        let file = try files.open(path, .createNew)
        let before = try file.status()
        try file.write([1], at: 0)
        try file.syncData()
        let after = try file.status()
        #expect(after == (try files.status(of: path)))
        #expect(after.byteCount == 1)
        #expect(after.isRegularFile && !after.isDirectory)
        #expect(after.inode == before.inode && after.device == before.device)
        #expect(after.modifiedNanoseconds >= before.modifiedNanoseconds)
        #expect(after.modifiedNanoseconds > 1_600_000_000_000_000_000)
    }
}

extension OpenFile {
    func write(_ bytes: [UInt8], at offset: Int64) throws(FileError) {
        var failure: FileError?
        bytes.withUnsafeBytes { memory in
            do throws(FileError) {
                try write(memory, at: offset)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }

    func bytes(at offset: Int64, count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0xAA, count: count)
        let found = try bytes.withUnsafeMutableBytes { try read(into: $0, at: offset) }
        return Array(bytes.prefix(found))
    }
}
