/// Whether what is acknowledged is on stable storage.
package enum Durability: String, Sendable {
    /// Every promise holds.
    case on
    /// Nothing is synced: a power cut or a crash of the system can take what was acknowledged, and damage
    /// the database. Only there so that the cost of `on` can be measured.
    case off

    /// The real file system, which syncs accordingly.
    package var fileSystem: any FileSystem {
        switch self {
        case .on: POSIXFileSystem()
        case .off: UnsyncedFileSystem(POSIXFileSystem())
        }
    }
}

/// A file system in front of another one that makes nothing durable: its syncs succeed and do nothing.
/// Everything else the other one does.
package struct UnsyncedFileSystem: FileSystem {
    private let base: any FileSystem

    package init(_ base: any FileSystem) { self.base = base }

    package func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        UnsyncedFile(try base.open(path, mode))
    }

    package func status(of path: String) throws(FileError) -> FileStatus? {
        try base.status(of: path)
    }

    package func makeDirectory(_ path: String) throws(FileError) { try base.makeDirectory(path) }

    package func list(_ path: String) throws(FileError) -> [String] { try base.list(path) }

    package func rename(_ source: String, to target: String) throws(FileError) {
        try base.rename(source, to: target)
    }

    package func renameWithoutReplacing(_ source: String, to target: String) throws(FileError) {
        try base.renameWithoutReplacing(source, to: target)
    }

    package func remove(_ path: String) throws(FileError) -> Bool { try base.remove(path) }

    package func syncDirectory(_ path: String) throws(FileError) {}

    package func availableBytes(at path: String) throws(FileError) -> Int64 {
        try base.availableBytes(at: path)
    }
}

private final class UnsyncedFile: OpenFile {
    private let base: any OpenFile

    init(_ base: any OpenFile) { self.base = base }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try base.write(bytes, at: offset)
    }

    func writeUncached(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try base.writeUncached(bytes, at: offset)
    }

    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(FileError) -> Int {
        try base.read(into: buffer, at: offset)
    }

    func load(_ byteCount: Int64, at offset: Int64) throws(FileError) {
        try base.load(byteCount, at: offset)
    }

    func duplicateDescriptor() throws(FileError) -> Int32? { try base.duplicateDescriptor() }

    func syncData() throws(FileError) {}

    func truncate(to byteCount: Int64) throws(FileError) { try base.truncate(to: byteCount) }

    func status() throws(FileError) -> FileStatus { try base.status() }

    func lockExclusively() throws(FileError) { try base.lockExclusively() }

    func close() throws(FileError) { try base.close() }
}
