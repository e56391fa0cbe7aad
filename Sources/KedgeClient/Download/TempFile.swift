internal import Foundation
internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// The file in which a download gathers, beside its destination (R46, R112).
struct TempFile: Sendable {
    let file: any OpenFile
    let inode: UInt64

    /// True when the path leads to this very file, and not to another one that was put in its place.
    func isFound(at path: String, files: any FileSystem) throws(FileError) -> Bool {
        try file.status().isSameFile(as: try files.status(of: path))
    }

    /// Path of a temporary file of a transfer: hidden, named for it, on the destination's volume.
    ///
    /// - Parameter mark: Tells one file of the transfer from another. A process that was stopped and
    ///   wakes when the transfer is somebody else's must find nothing under the name it knows.
    static func path(for destination: String, id: TransferID, mark: String = "") -> String {
        let parent = directory(of: destination)
        var name = destination.split(separator: "/").last.map(String.init) ?? "file"
        // Long names are cut so that the whole stays a legal one.
        while name.utf8.count > 190 { name.removeLast() }
        return (parent == "/" ? "" : parent) + "/.\(name).\(id.text)\(mark).kedge-part"
    }

    /// The directory that holds a path.
    static func directory(of path: String) -> String {
        let parts = path.split(separator: "/").dropLast()
        return "/" + parts.joined(separator: "/")
    }

    /// Opens the file that the record describes and locks it; nil when it is not there any more, or
    /// not that one, or when another process still has it: that one may wake and write.
    ///
    /// - Parameter size: What it must measure; nil when any size will do.
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

    /// False when another process has the file.
    private static func lock(_ file: any OpenFile) throws -> Bool {
        do throws(FileError) {
            try file.lockExclusively()
        } catch {
            guard error.code != .locked else { return false }
            // A file system without locks: the lease alone has to do.
            guard [ENOLCK, ENOSYS, EOPNOTSUPP].contains(error.number) else { throw error }
        }
        return true
    }

    /// Makes a new file, sparse at its full size, after checking that the bytes will fit (R97). It is
    /// locked while it is open.
    ///
    /// - Throws: `FileError`; one without space when the disk has less than `size`.
    static func create(_ path: String, size: Int64, files: any FileSystem) throws -> TempFile {
        let parent = directory(of: path)
        try requireSpace(size, at: parent, files: files)
        let file = try files.open(path, .createNew)
        // Nobody else knows the name yet.
        _ = try lock(file)
        try file.truncate(to: size)
        try files.syncDirectory(parent)
        return TempFile(file: file, inode: try file.status().inode)
    }

    /// - Throws: `TransferError` with `DISK_FULL`.
    static func requireSpace(_ byteCount: Int64, at path: String, files: any FileSystem) throws {
        guard try files.availableBytes(at: path) < byteCount else { return }
        throw TransferError(
            .diskFull, operation: "check space", resource: path,
            explanation: "The disk has too little space for this file.")
    }

    /// SHA-256 of a file from start to end, read in pieces.
    static func digest(of file: any OpenFile, range: ByteRange) throws -> SHA256Digest {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var hasher = SHA256Hasher()
        while hasher.byteCount < range.byteCount {
            let limit = min(buffer.count, Int(clamping: range.byteCount - hasher.byteCount))
            let count = try file.read(
                into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<limit]),
                at: range.start + hasher.byteCount)
            guard count > 0 else { break }
            hasher.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        return hasher.digest()
    }
}

extension FileStatus {
    /// True when both are of one file, whatever it is called.
    func isSameFile(as other: FileStatus?) -> Bool {
        inode == other?.inode && device == other?.device
    }
}
