/// What a path points at.
package struct FileStatus: Sendable, Hashable {
    /// Size in bytes.
    package let byteCount: Int64
    /// Bytes that it takes on the disk: fewer than its size while a sparse file has holes.
    package let allocatedByteCount: Int64
    /// Time of the last change of the content, in nanoseconds since 1970.
    package let modifiedNanoseconds: Int64
    /// Time of the last change of content or attributes, in nanoseconds since 1970. No program can set
    /// it, so it also moves when a change of the content hides behind an old modification time.
    package let changedNanoseconds: Int64
    package let isDirectory: Bool
    package let isRegularFile: Bool
    /// Device and inode: two paths with the same pair are one file.
    package let device: UInt64
    package let inode: UInt64
    /// The permission bits; nil where there are none.
    package let permissions: UInt16?

    /// - Parameters:
    ///   - changedNanoseconds: Nil for a file whose attributes were never changed alone.
    ///   - allocatedByteCount: Nil for a file without holes.
    package init(
        byteCount: Int64, modifiedNanoseconds: Int64, changedNanoseconds: Int64? = nil,
        isDirectory: Bool, isRegularFile: Bool, device: UInt64, inode: UInt64,
        allocatedByteCount: Int64? = nil, permissions: UInt16? = nil
    ) {
        self.byteCount = byteCount
        self.allocatedByteCount = allocatedByteCount ?? byteCount
        self.modifiedNanoseconds = modifiedNanoseconds
        self.changedNanoseconds = changedNanoseconds ?? modifiedNanoseconds
        self.isDirectory = isDirectory
        self.isRegularFile = isRegularFile
        self.device = device
        self.inode = inode
        self.permissions = permissions
    }
}

/// How to open a file.
package enum OpenMode: Sendable {
    /// For reading; the file exists and is not a symbolic link.
    case read
    /// For reading, following symbolic links: for files that a person named.
    case readFollowingLinks
    /// For reading and writing; the file exists.
    case readWrite
    /// For reading and writing; the file must not exist; made with mode 0600.
    case createNew
    /// For reading and writing; made with mode 0600 when absent.
    case openOrCreate
}

/// An open file. Every call blocks and belongs on a ``BlockingPool``.
///
/// After a failed ``syncData()`` the descriptor must not be trusted again: the kernel marks the pages
/// clean, and the next call would report a success that is not true (fsync(2)).
package protocol OpenFile: AnyObject, Sendable {
    /// Writes all bytes at the offset, continuing after short writes and interruptions.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError)
    /// Writes all bytes at the offset like ``write(_:at:)``, past the page cache where the file system
    /// and the alignment allow it.
    ///
    /// For large writes that nobody reads back soon: they cost no copy, push nothing else out of the
    /// cache, and leave little for the next sync to wait for. Not durable before that sync either.
    func writeUncached(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError)
    /// Reads up to the buffer's size at the offset; fewer bytes only at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int
    /// Brings these bytes into the page cache, so that reading or sending them does not wait for a disk.
    ///
    /// - Throws: `notFound` when the file ends before.
    func load(_ byteCount: Int64, at offset: Int64) throws(FileError)
    /// Drops clean bytes from the page cache, so that the next read of them comes from the disk. Best
    /// effort: what cannot be dropped stays.
    func dropCached(_ byteCount: Int64, at offset: Int64)
    /// A descriptor of the same open file that the caller closes, for the kernel to send from; nil when
    /// there is none to give.
    func duplicateDescriptor() throws(FileError) -> Int32?
    /// Makes the content durable, with the size that is needed to read it back (fdatasync).
    func syncData() throws(FileError)
    /// Sets the size; new bytes read as zero and take no space.
    func truncate(to byteCount: Int64) throws(FileError)
    func status() throws(FileError) -> FileStatus
    /// Takes the advisory lock of the whole file, or throws ``FileError/Code/locked`` at once.
    func lockExclusively() throws(FileError)
    /// Closes; further calls are a mistake of the program. Closing twice does nothing.
    func close() throws(FileError)
}

extension OpenFile {
    package func writeUncached(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64
    ) throws(FileError) {
        try write(bytes, at: offset)
    }

    package func load(_ byteCount: Int64, at offset: Int64) throws(FileError) {}

    package func dropCached(_ byteCount: Int64, at offset: Int64) {}

    package func duplicateDescriptor() throws(FileError) -> Int32? { nil }
}

/// The one seam to the file system: everything that Kedge does to files goes through it, so that a
/// test can put a failing, slow or forgetful disk in its place. Every call blocks.
package protocol FileSystem: Sendable {
    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile
    /// Status of a path, not following a final symbolic link; nil when there is nothing.
    func status(of path: String) throws(FileError) -> FileStatus?
    /// Makes one directory with mode 0700; an existing one is left as it is.
    func makeDirectory(_ path: String) throws(FileError)
    /// Names in a directory, without `.` and `..`, in no order.
    func list(_ path: String) throws(FileError) -> [String]
    /// Renames, replacing what is at the target. Durable after ``syncDirectory(_:)``.
    func rename(_ source: String, to target: String) throws(FileError)
    /// Renames; throws ``FileError/Code/exists`` instead of replacing what is at the target.
    func renameWithoutReplacing(_ source: String, to target: String) throws(FileError)
    /// Gives a file a second name; throws ``FileError/Code/exists`` when the target is there. Durable after
    /// ``syncDirectory(_:)``.
    ///
    /// - Throws: An error with ``FileError/isUnsupportedLink`` where files have one name each.
    func link(_ source: String, to target: String) throws(FileError)
    /// Removes a file; true when there was one. Durable after ``syncDirectory(_:)``.
    @discardableResult
    func remove(_ path: String) throws(FileError) -> Bool
    /// Makes the names in a directory durable.
    func syncDirectory(_ path: String) throws(FileError)
    /// Bytes that an unprivileged process can still write on the file system of the path.
    func availableBytes(at path: String) throws(FileError) -> Int64
    /// Name of the network file system that the path is on, such as `nfs`; nil for a local one.
    func networkFileSystem(at path: String) throws(FileError) -> String?
}

extension FileSystem {
    package func networkFileSystem(at path: String) throws(FileError) -> String? { nil }

    /// Makes the names in a directory durable although a sync of it may have failed before.
    ///
    /// After a failed sync the kernel may take the directory for clean, and the next sync would succeed
    /// without writing anything (fsync(2)). So the directory is changed first: then the block with all
    /// its names is written again. Of a directory with thousands of names it is one block of several,
    /// and perhaps another one.
    ///
    /// - Parameter scratch: A path in the directory that nobody else uses; nothing is there afterwards.
    package func syncDirectoryAnew(_ path: String, scratch: String) throws(FileError) {
        try open(scratch, .openOrCreate).close()
        try remove(scratch)
        try syncDirectory(path)
    }
}
