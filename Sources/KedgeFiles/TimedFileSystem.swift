/// A file system that measures its syncs. Everything else is forwarded.
package struct TimedFileSystem<Base: FileSystem>: ForwardingFileSystem {
    package let base: Base
    private let onSync: @Sendable (ContinuousClock.Instant) -> Void

    /// - Parameter onSync: Called after each sync, also a failed one, with the time of its start.
    package init(
        _ base: Base, onSync: @escaping @Sendable (ContinuousClock.Instant) -> Void
    ) {
        self.base = base
        self.onSync = onSync
    }

    package func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        TimedFile(base: try base.open(path, mode), onSync: onSync)
    }

    package func syncDirectory(_ path: String) throws(FileError) {
        let start = ContinuousClock.now
        defer { onSync(start) }
        try base.syncDirectory(path)
    }
}

private final class TimedFile: ForwardingFile {
    let base: any OpenFile
    private let onSync: @Sendable (ContinuousClock.Instant) -> Void

    init(base: any OpenFile, onSync: @escaping @Sendable (ContinuousClock.Instant) -> Void) {
        self.base = base
        self.onSync = onSync
    }

    func writeUncached(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try base.writeUncached(bytes, at: offset)
    }

    func syncData() throws(FileError) {
        let start = ContinuousClock.now
        defer { onSync(start) }
        try base.syncData()
    }
}

extension FileSystem {
    /// Returns this file system, which reports the start of each sync after its end.
    package func timingSyncs(
        _ onSync: @escaping @Sendable (ContinuousClock.Instant) -> Void
    ) -> any FileSystem {
        TimedFileSystem(self, onSync: onSync)
    }
}
