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
