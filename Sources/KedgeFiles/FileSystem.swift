/// The status of a file or directory.
package struct FileStatus: Sendable, Hashable {
    /// Size in bytes.
    package let byteCount: Int64
    /// Allocated bytes on the disk: fewer than the size while a sparse file has holes.
    package let allocatedByteCount: Int64
    /// Time of the last change to the content, in nanoseconds since 1970.
    package let modifiedNanoseconds: Int64
    /// Time of the last change to content or attributes, in nanoseconds since 1970. Programs cannot
    /// set it, so it reveals a change of content behind an old modification time.
    package let changedNanoseconds: Int64
    package let isDirectory: Bool
    package let isRegularFile: Bool
    /// Device and inode: two paths with the same pair are one file.
    package let device: UInt64
    package let inode: UInt64
    /// The permission bits; nil where there are none.
    package let permissions: UInt16?
    /// The owner and the group; nil where there are none.
    package let ownerID: UInt32?
    package let groupID: UInt32?

    /// - Parameters:
    ///   - changedNanoseconds: Nil when it equals `modifiedNanoseconds`.
    ///   - allocatedByteCount: Nil for a file without holes.
    package init(
        byteCount: Int64, modifiedNanoseconds: Int64, changedNanoseconds: Int64? = nil,
        isDirectory: Bool, isRegularFile: Bool, device: UInt64, inode: UInt64,
        allocatedByteCount: Int64? = nil, permissions: UInt16? = nil, ownerID: UInt32? = nil,
        groupID: UInt32? = nil
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
        self.ownerID = ownerID
        self.groupID = groupID
    }
}

/// The mode in which to open a file.
package enum OpenMode: Sendable {
    /// For reading; the file exists and is not a symbolic link.
    case read
    /// For reading, following symbolic links: for files that a user named.
    case readFollowingLinks
    /// For reading and writing; the file exists.
    case readWrite
    /// For reading and writing; the file must not exist; created with mode 0600.
    case createNew
    /// For reading and writing; created with mode 0600 when absent.
    case openOrCreate
}

/// An open file. Every call blocks and belongs on a ``BlockingPool``.
///
/// After a failed ``syncData()`` the descriptor must not be trusted: the kernel marks the pages
/// clean, and the next call would report a false success (fsync(2)).
package protocol OpenFile: AnyObject, Sendable {
    /// Writes all bytes at the offset, continuing after short writes and interruptions.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError)
    /// Writes all bytes at the offset like ``write(_:at:)``, bypassing the page cache where the
    /// file system and the alignment allow it.
    ///
    /// For large writes that are not read back soon: they cost no copy, displace nothing in the
    /// cache, and leave little work for the next sync. Not durable before that sync.
    func writeUncached(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError)
    /// Reads up to the buffer's size at the offset; fewer bytes only at the end of the file.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(FileError) -> Int
    /// Prefetches these bytes into the page cache, so that reading or sending them does not wait
    /// for a disk.
    ///
    /// - Throws: `notFound` when the file ends early.
    func prefetch(_ byteCount: Int64, at offset: Int64) throws(FileError)
    /// Drops clean bytes from the page cache, so that the next read of them comes from the disk.
    /// Best effort.
    func dropCached(_ byteCount: Int64, at offset: Int64)
    /// Returns a duplicate descriptor for the kernel to send from, which the caller closes; nil
    /// when there is none.
    func duplicateDescriptor() throws(FileError) -> Int32?
    /// Sets the permissions. Some file systems have none, and refuse.
    func setPermissions(_ permissions: UInt16) throws(FileError)
    /// Sets the time of the last change to the content, in nanoseconds since 1970. File systems
    /// round it down to their own precision.
    func setModificationTime(_ nanoseconds: Int64) throws(FileError)
    /// Makes the content durable, with the size needed to read it back (fdatasync).
    func syncData() throws(FileError)
    /// Sets the size; new bytes read as zero and take no space.
    func truncate(to byteCount: Int64) throws(FileError)
    func status() throws(FileError) -> FileStatus
    /// Takes the exclusive advisory lock of the file, or throws ``FileError/Code/locked`` at once.
    func lockExclusively() throws(FileError)
    /// Closes the file. Any later call is a programming error, except that closing twice does
    /// nothing.
    func close() throws(FileError)
}

extension OpenFile {
    package func writeUncached(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64
    ) throws(FileError) {
        try write(bytes, at: offset)
    }

    package func prefetch(_ byteCount: Int64, at offset: Int64) throws(FileError) {}

    package func dropCached(_ byteCount: Int64, at offset: Int64) {}

    package func duplicateDescriptor() throws(FileError) -> Int32? { nil }
    /// Does nothing.
    package func setPermissions(_ permissions: UInt16) throws(FileError) {}
    /// Does nothing.
    package func setModificationTime(_ nanoseconds: Int64) throws(FileError) {}
}

/// The seam to the file system. Kedge does all file operations through it, so that tests can
/// substitute a failing, slow or forgetful disk. Every call blocks.
package protocol FileSystem: Sendable {
    func open(_ path: String, _ mode: OpenMode) throws(FileError) -> any OpenFile
    /// Returns the status of a path, without following a final symbolic link; nil when nothing is
    /// there.
    func status(of path: String) throws(FileError) -> FileStatus?
    /// Creates one directory with mode 0700 and returns true; leaves an existing one as it is.
    @discardableResult
    func makeDirectory(_ path: String) throws(FileError) -> Bool
    /// Returns the names in a directory, without `.` and `..`, in no order.
    func list(_ path: String) throws(FileError) -> [String]
    /// Renames a file, replacing a file at the target. Durable after ``syncDirectory(_:)``.
    func rename(_ source: String, to target: String) throws(FileError)
    /// Renames a file; throws ``FileError/Code/exists`` instead of replacing a file at the target.
    func renameWithoutReplacing(_ source: String, to target: String) throws(FileError)
    /// Gives a file a second name; throws ``FileError/Code/exists`` when the target exists. Durable
    /// after ``syncDirectory(_:)``.
    ///
    /// - Throws: An error with ``FileError/isUnsupportedLink`` where a file can have only one name.
    func link(_ source: String, to target: String) throws(FileError)
    /// Removes a file; returns true when it existed. Durable after ``syncDirectory(_:)``.
    @discardableResult
    func remove(_ path: String) throws(FileError) -> Bool
    /// Makes the names in a directory durable.
    func syncDirectory(_ path: String) throws(FileError)
    /// Returns how many bytes an unprivileged process can still write on the path's file system.
    func availableBytes(at path: String) throws(FileError) -> Int64
    /// Returns the name of the path's network file system, such as `nfs`; nil for a local one.
    func networkFileSystem(at path: String) throws(FileError) -> String?
}

extension FileSystem {
    package func networkFileSystem(at path: String) throws(FileError) -> String? { nil }

    /// Makes the names in a directory durable, although an earlier sync may have failed.
    ///
    /// After a failed sync the kernel may consider the directory clean, and the next sync would
    /// succeed without writing anything (fsync(2)). Changing the directory first makes the kernel
    /// write the changed block again, with all its names. A directory with thousands of names has
    /// several blocks, of which this rewrites only one, not necessarily the right one.
    ///
    /// - Parameter scratch: An otherwise unused path in the directory; nothing is there afterwards.
    package func syncDirectoryAnew(_ path: String, scratch: String) throws(FileError) {
        try open(scratch, .openOrCreate).close()
        try remove(scratch)
        try syncDirectory(path)
    }
}
