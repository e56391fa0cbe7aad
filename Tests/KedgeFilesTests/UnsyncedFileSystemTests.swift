import KedgeFiles
import KedgeLocks
import KedgeTesting
import Testing

struct UnsyncedFileSystemTests {
    private let directory: TemporaryDirectory
    private let base = RecordingFileSystem()
    private var files: UnsyncedFileSystem<RecordingFileSystem> { UnsyncedFileSystem(base) }

    init() throws { directory = try TemporaryDirectory() }

    private func path(_ name: String) -> String { directory.path + "/" + name }

    @Test func `syncs succeed and do not reach the base`() throws {
        let file = try files.open(path("a"), .createNew)
        try file.syncData()
        try files.syncDirectory(directory.path)
        try files.syncDirectoryAnew(directory.path, scratch: path("scratch"))
        #expect(base.calls == ["open", "open", "close", "remove"])
    }

    @Test func `a file can be lost in a power cut although its syncs succeeded`() throws {
        let disk = SimulatedDisk()
        let files = UnsyncedFileSystem(disk)
        let file = try files.open("/a", .createNew)
        try file.write([1], at: 0)
        try file.syncData()
        try files.syncDirectory("/")
        #expect(disk.image.surviving(.losesAll).content(at: "/a") == nil)
    }

    @Test func `every other call on a file reaches the base`() throws {
        let file = try files.open(path("a"), .createNew)
        try file.write([1, 2, 3], at: 0)
        try withUnsafeBytes(of: UInt8(9)) { try file.writeUncached($0, at: 3) }
        #expect(try file.bytes(at: 0, count: 9) == [1, 2, 3, 9])
        try file.prefetch(4, at: 0)
        #expect(try file.duplicateDescriptor() == RecordingFile.descriptor)
        try file.truncate(to: 2)
        #expect(try file.status().byteCount == 2)
        try file.lockExclusively()
        try file.close()
        #expect(
            base.calls == [
                "open", "write", "writeUncached", "read", "prefetch", "duplicateDescriptor",
                "truncate",
                "fileStatus", "lock", "close",
            ])
    }

    @Test func `every other call on the file system reaches the base`() throws {
        try files.makeDirectory(path("d"))
        _ = try files.open(path("d/a"), .openOrCreate)
        #expect(try files.list(path("d")) == ["a"])
        try files.rename(path("d/a"), to: path("d/b"))
        try files.renameWithoutReplacing(path("d/b"), to: path("d/c"))
        #expect(try files.status(of: path("d/c"))?.isRegularFile == true)
        #expect(try files.remove(path("d/c")))
        #expect(try !files.remove(path("d/c")))
        #expect(try files.availableBytes(at: directory.path) > 0)
        #expect(
            base.calls == [
                "makeDirectory", "open", "list", "rename", "renameWithoutReplacing", "status",
                "remove", "remove", "availableBytes",
            ])
    }

    @Test func `an error of the base is passed on`() throws {
        let error = #expect(throws: FileError.self) { try files.open(path("absent"), .read) }
        #expect(error?.code == .notFound)
    }
}

/// Forwards to the real file system and records the name of each call.
private final class RecordingFileSystem: FileSystem {
    private let real = POSIXFileSystem()
    private let names = Mutex<[String]>([])

    var calls: [String] { names.withLock { $0 } }

    func note(_ name: String) { names.withLock { $0.append(name) } }

    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        note("open")
        return RecordingFile(try real.open(path, mode), in: self)
    }

    func status(of path: String) throws(FileError) -> FileStatus? {
        note("status")
        return try real.status(of: path)
    }

    func makeDirectory(_ path: String) throws(FileError) -> Bool {
        note("makeDirectory")
        return try real.makeDirectory(path)
    }

    func list(_ path: String) throws(FileError) -> [String] {
        note("list")
        return try real.list(path)
    }

    func rename(_ source: String, to target: String) throws(FileError) {
        note("rename")
        try real.rename(source, to: target)
    }

    func renameWithoutReplacing(_ source: String, to target: String) throws(FileError) {
        note("renameWithoutReplacing")
        try real.renameWithoutReplacing(source, to: target)
    }

    func link(_ source: String, to target: String) throws(FileError) {
        note("link")
        try real.link(source, to: target)
    }

    func remove(_ path: String) throws(FileError) -> Bool {
        note("remove")
        return try real.remove(path)
    }

    func syncDirectory(_ path: String) throws(FileError) {
        note("syncDirectory")
        try real.syncDirectory(path)
    }

    func availableBytes(at path: String) throws(FileError) -> Int64 {
        note("availableBytes")
        return try real.availableBytes(at: path)
    }
}

private final class RecordingFile: OpenFile {
    /// Stands for a duplicated descriptor; no call uses it.
    static let descriptor: Int32 = 12_345
    private let real: any OpenFile
    private let files: RecordingFileSystem

    init(_ real: any OpenFile, in files: RecordingFileSystem) {
        self.real = real
        self.files = files
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        files.note("write")
        try real.write(bytes, at: offset)
    }

    func writeUncached(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        files.note("writeUncached")
        try real.writeUncached(bytes, at: offset)
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(FileError) -> Int {
        files.note("read")
        return try real.read(into: buffer, at: offset)
    }

    func prefetch(_ byteCount: Int64, at offset: Int64) throws(FileError) {
        files.note("prefetch")
        try real.prefetch(byteCount, at: offset)
    }

    func duplicateDescriptor() throws(FileError) -> Int32? {
        files.note("duplicateDescriptor")
        return Self.descriptor
    }

    func syncData() throws(FileError) {
        files.note("syncData")
        try real.syncData()
    }

    func truncate(to byteCount: Int64) throws(FileError) {
        files.note("truncate")
        try real.truncate(to: byteCount)
    }

    func status() throws(FileError) -> FileStatus {
        files.note("fileStatus")
        return try real.status()
    }

    func lockExclusively() throws(FileError) {
        files.note("lock")
        try real.lockExclusively()
    }

    func close() throws(FileError) {
        files.note("close")
        try real.close()
    }
}
