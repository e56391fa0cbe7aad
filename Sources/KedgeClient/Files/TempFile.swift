internal import Foundation
package import KedgeFiles
internal import KedgeHash
package import KedgeModel

/// The temporary file of a download, beside its destination.
package struct TempFile: Sendable {
    let file: any OpenFile
    let inode: UInt64

    /// Whether the path leads to this very file, not to another one in its place.
    func isFound(at path: String, files: any FileSystem) throws(FileError) -> Bool {
        try file.status().isSameFile(as: try files.status(of: path))
    }

    /// Returns the path of a temporary file: hidden, named after the destination and the transfer,
    /// and on the destination's volume.
    ///
    /// - Parameter mark: Distinguishes the temporary files of one transfer. A suspended process
    ///   that wakes after another one took over must find nothing under the name it knows.
    package static func path(for destination: String, id: TransferID, mark: String = "") -> String {
        let parent = directory(of: destination)
        var name = FilePath.components(of: destination).last { !$0.isEmpty } ?? "file"
        // Cuts long names, so that the full name stays legal.
        while name.utf8.count > 190 { name.removeLast() }
        return (parent == "/" ? "" : parent) + "/.\(name).\(id.text)\(mark).kedge-part"
    }

    package static func directory(of path: String) -> String {
        let parts = FilePath.components(of: path).filter { !$0.isEmpty }.dropLast()
        return "/" + parts.joined(separator: "/")
    }

    /// Opens and locks the file that the record describes.
    ///
    /// - Parameter size: The expected size; nil accepts any size.
    /// - Returns: Nil if the file is missing, is another file, or is locked by another process,
    ///   which may still write to it.
    static func reopen(
        _ path: String, inode: UInt64, size: Int64?, files: any FileSystem
    ) throws -> TempFile? {
        guard let status = try files.status(of: path), status.isRegularFile, status.inode == inode
        else { return nil }
        if let size, status.byteCount != size { return nil }
        let file = try files.open(path, .readWrite)
        guard try file.status().inode == inode, try lock(file) else { return nil }
        return TempFile(file: file, inode: inode)
    }

    /// Returns false when another process holds the lock.
    private static func lock(_ file: any OpenFile) throws -> Bool {
        do throws(FileError) {
            try file.lockExclusively()
        } catch {
            guard error.code != .locked else { return false }
            // On a file system without locks, the lease alone protects the file.
            guard [ENOLCK, ENOSYS, EOPNOTSUPP].contains(error.number) else { throw error }
        }
        return true
    }

    /// Creates a sparse file of the full size, after checking that the bytes will fit. The file is
    /// locked while it is open.
    ///
    /// - Throws: `TransferError` with `DISK_FULL` if the bytes do not fit; `FileError`.
    static func create(_ path: String, size: Int64, files: any FileSystem) throws -> TempFile {
        let parent = directory(of: path)
        try requireSpace(size, at: parent, files: files)
        let file = try files.open(path, .createNew)
        // No other process knows the name yet.
        _ = try lock(file)
        try file.truncate(to: size)
        try files.syncDirectory(parent)
        return TempFile(file: file, inode: try file.status().inode)
    }

    /// Checks the free space of the file system.
    ///
    /// - Throws: `TransferError` with `DISK_FULL`.
    static func requireSpace(_ byteCount: Int64, at path: String, files: any FileSystem) throws {
        guard try files.availableBytes(at: path) < byteCount else { return }
        throw TransferError(
            .diskFull, operation: "check space", resource: path,
            explanation: "The disk has not enough space for this file.")
    }

    /// Returns the permissions of a finished file: those of the file that it replaces, or else of a
    /// new file.
    ///
    /// Another user's file only takes rights away from a new one. Its group's rights are kept only
    /// if this file has the same group. The bits that give a program the rights of
    /// its owner or group are not kept: it has other bytes now.
    ///
    /// - Parameters:
    ///   - file: The status of the new file.
    ///   - replaced: The status of the file that has its final name; nil for none.
    package static func permissions(
        of file: FileStatus, replacing replaced: FileStatus?
    ) -> UInt16 {
        let new = FileCreationMask.newFilePermissions
        guard let replaced, replaced.isRegularFile, let permissions = replaced.permissions else {
            return new
        }
        // Never wider than before, but its owner, who is another one now, can use it.
        guard replaced.ownerID == file.ownerID else { return new & (permissions | 0o600) }
        let group = replaced.groupID == file.groupID ? 0o070 : new & 0o070
        return permissions & (0o707 | group)
    }

    /// Returns the SHA-256 of a range of a file, read in blocks.
    package static func digest(of file: any OpenFile, range: ByteRange) throws -> SHA256Digest {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var hasher = SHA256Hasher()
        try hasher.update(upTo: range.byteCount, through: buffer) { memory, hashedByteCount in
            try file.read(into: memory, at: range.start + hashedByteCount)
        }
        return hasher.digest()
    }
}

extension FileStatus {
    /// Whether both statuses describe one file, whatever its name.
    func isSameFile(as other: FileStatus?) -> Bool {
        inode == other?.inode && device == other?.device
    }
}
