/// A file system that forwards every operation to a base by default.
package protocol ForwardingFileSystem: FileSystem {
    associatedtype Base: FileSystem
    var base: Base { get }
}

extension ForwardingFileSystem {
    package func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile {
        try base.open(path, mode)
    }

    package func status(of path: String) throws(FileError) -> FileStatus? {
        try base.status(of: path)
    }

    @discardableResult
    package func makeDirectory(_ path: String) throws(FileError) -> Bool {
        try base.makeDirectory(path)
    }

    package func list(_ path: String) throws(FileError) -> [String] { try base.list(path) }

    package func rename(_ source: String, to target: String) throws(FileError) {
        try base.rename(source, to: target)
    }

    package func renameWithoutReplacing(_ source: String, to target: String) throws(FileError) {
        try base.renameWithoutReplacing(source, to: target)
    }

    package func link(_ source: String, to target: String) throws(FileError) {
        try base.link(source, to: target)
    }

    package func remove(_ path: String) throws(FileError) -> Bool { try base.remove(path) }

    package func syncDirectory(_ path: String) throws(FileError) { try base.syncDirectory(path) }

    package func availableBytes(at path: String) throws(FileError) -> Int64 {
        try base.availableBytes(at: path)
    }

    package func networkFileSystem(at path: String) throws(FileError) -> String? {
        try base.networkFileSystem(at: path)
    }
}

/// An open file that forwards every operation to a base by default.
///
/// ``writeUncached(_:at:)`` calls ``write(_:at:)``, so that one function sees every write.
package protocol ForwardingFile: OpenFile {
    var base: any OpenFile { get }
}

extension ForwardingFile {
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        try base.write(bytes, at: offset)
    }

    package func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(FileError) -> Int {
        try base.read(into: buffer, at: offset)
    }

    package func prefetch(_ byteCount: Int64, at offset: Int64) throws(FileError) {
        try base.prefetch(byteCount, at: offset)
    }

    package func dropCached(_ byteCount: Int64, at offset: Int64) {
        base.dropCached(byteCount, at: offset)
    }

    package func duplicateDescriptor() throws(FileError) -> Int32? {
        try base.duplicateDescriptor()
    }

    package func setPermissions(_ permissions: UInt16) throws(FileError) {
        try base.setPermissions(permissions)
    }

    package func setModificationTime(_ nanoseconds: Int64) throws(FileError) {
        try base.setModificationTime(nanoseconds)
    }

    package func syncData() throws(FileError) { try base.syncData() }

    package func truncate(to byteCount: Int64) throws(FileError) {
        try base.truncate(to: byteCount)
    }

    package func status() throws(FileError) -> FileStatus { try base.status() }

    package func lockExclusively() throws(FileError) { try base.lockExclusively() }

    package func close() throws(FileError) { try base.close() }
}
