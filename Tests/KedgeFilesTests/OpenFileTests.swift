import Glibc
import KedgeFiles
import KedgeTesting
import Testing

struct OpenFileTests {
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
    func `a read returns fewer bytes only at the file's end`(offset: Int64, count: Int) throws {
        let file = try files.open(path, .createNew)
        try file.write([1, 2, 3], at: 0)
        #expect(try file.bytes(at: offset, count: 100).count == count)
    }

    /// Complete blocks bypass the page cache where possible, and the rest goes through it. Readers
    /// see no difference.
    @Test(
        arguments: [
            (0, 8192), (0, 10_000), (4096, 4096), (100, 9000), (0, 1), (8192, 0), (4096, 12_289),
        ] as [(Int64, Int)])
    func `bytes written past the page cache read back like any others`(offset: Int64, count: Int)
        throws
    {
        let file = try files.open(path, .createNew)
        try file.write([UInt8](repeating: 1, count: 30_000), at: 0)
        let buffer = BufferPool(bufferCapacity: 16 << 10, keptCount: 0).take()
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        #expect(bytes.withUnsafeBytes { buffer.append($0) } == count)
        try file.writeUncached(buffer.bytes, at: offset)
        var expected = [UInt8](repeating: 1, count: 30_000)
        expected.replaceSubrange(Int(offset)..<Int(offset) + count, with: bytes)
        #expect(try file.bytes(at: 0, count: 40_000) == expected)
        // Bytes from unaligned memory cannot bypass the cache.
        let rest = UnsafeRawBufferPointer(rebasing: buffer.bytes.dropFirst(1))
        try file.writeUncached(rest, at: 0)
        #expect(try file.bytes(at: 0, count: max(0, count - 1)) == Array(bytes.dropFirst()))
    }

    @Test(arguments: [0, 1, -1, 1_764_106_893_123_456_789, -62_000_000_001] as [Int64])
    func `a modification time is set to the nanosecond, and the time of access stays`(
        nanoseconds: Int64
    ) throws {
        let file = try files.open(path, .createNew)
        try file.write([1], at: 0)
        var before = stat()
        lstat(path, &before)
        try file.setModificationTime(nanoseconds)
        var after = stat()
        lstat(path, &after)
        #expect(try file.status().modifiedNanoseconds == nanoseconds)
        #expect(after.st_atim.tv_sec == before.st_atim.tv_sec)
        #expect(after.st_atim.tv_nsec == before.st_atim.tv_nsec)
    }

    @Test func `a file is prefetched up to its end and not beyond`() throws {
        let file = try files.open(path, .createNew)
        try file.write([UInt8](repeating: 1, count: 200_000), at: 0)
        try file.prefetch(200_000, at: 0)
        try file.prefetch(1, at: 199_999)
        #expect(throws: FileError.self) { try file.prefetch(2, at: 199_999) }
    }

    @Test func `a duplicated descriptor stays open when the file is closed`() throws {
        let file = try files.open(path, .createNew)
        try file.write([1, 2, 3], at: 0)
        let descriptor = try #require(try file.duplicateDescriptor())
        defer { close(descriptor) }
        try file.close()
        var byte: UInt8 = 0
        #expect(pread(descriptor, &byte, 1, 2) == 1)
        #expect(byte == 3)
    }

    @Test func `writing and reading no bytes is no error`() throws {
        let file = try files.open(path, .createNew)
        try file.write([], at: 7)
        #expect(try file.bytes(at: 0, count: 0) == [])
        #expect(try file.status().byteCount == 0)
    }

    @Test func `truncating a file cuts it or fills it with zeros`() throws {
        let file = try files.open(path, .createNew)
        try file.write([1, 2, 3], at: 0)
        try file.truncate(to: 1)
        try file.truncate(to: 4)
        try file.syncData()
        #expect(try file.bytes(at: 0, count: 9) == [1, 0, 0, 0])
    }

    @Test func `a file opened for reading refuses writes`() throws {
        try files.open(path, .createNew).close()
        let file = try files.open(path, .read)
        #expect(throws: FileError.self) { try file.write([1], at: 0) }
        #expect(try file.status().byteCount == 0)
    }

    @Test func `a closed file refuses every call, and closing it again does nothing`() throws {
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

    @Test func `a late call on a closed file never reaches the file that now has its descriptor`()
        throws
    {
        let first = try files.open(path, .createNew)
        try first.close()
        let second = try files.open(directory.path + "/second", .createNew)
        #expect(throws: FileError.self) { try first.write([1], at: 0) }
        #expect(try second.status().byteCount == 0)
    }

    @Test func `a descriptor is closed with the last reference to its file`() throws {
        do {
            let file = try files.open(path, .createNew)
            #expect(try directory.openDescriptorCount() == 1)
            try file.write([1], at: 0)
        }
        #expect(try directory.openDescriptorCount() == 0)
    }

    @Test func `a file has one lock holder at a time, until the holder closes it`() throws {
        let first = try files.open(path, .openOrCreate)
        let second = try files.open(path, .openOrCreate)
        try first.lockExclusively()
        let error = #expect(throws: FileError.self) { try second.lockExclusively() }
        #expect(error?.code == .locked)
        try first.close()
        try second.lockExclusively()
    }

    @Test func `the status of a file has its size, kind, identity and modification time`() throws {
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
