/// Whether acknowledged data is on stable storage.
package enum Durability: String, Sendable {
    /// All durability guarantees hold.
    case on
    /// No file is synced: a power loss or a system crash can lose acknowledged data and damage the
    /// database. Exists only to measure the cost of `on`.
    case off

    /// The real file system, with or without syncs.
    package var fileSystem: any FileSystem {
        switch self {
        case .on: POSIXFileSystem()
        case .off: UnsyncedFileSystem(POSIXFileSystem())
        }
    }
}

/// A file system whose syncs succeed without doing anything. Everything else is forwarded.
package struct UnsyncedFileSystem<Base: FileSystem>: ForwardingFileSystem {
    package let base: Base

    package init(_ base: Base) { self.base = base }

    package func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        UnsyncedFile(try base.open(path, mode))
    }

    package func syncDirectory(_ path: String) throws(FileError) {}
}

private final class UnsyncedFile: ForwardingFile {
    let base: any OpenFile

    init(_ base: any OpenFile) { self.base = base }

    func writeUncached(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try base.writeUncached(bytes, at: offset)
    }

    func syncData() throws(FileError) {}
}
