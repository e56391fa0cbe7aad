internal import KedgeFiles
internal import KedgeHash
internal import KedgeModel

/// The file in which a download gathers, beside its destination (R46, R112).
struct TempFile: Sendable {
    let file: any OpenFile
    let inode: UInt64

    /// Path of the temporary file of a transfer: hidden, named for it, on the destination's volume.
    static func path(for destination: String, id: TransferID) -> String {
        let parent = directory(of: destination)
        var name = destination.split(separator: "/").last.map(String.init) ?? "file"
        // Long names are cut so that the whole stays a legal one.
        while name.utf8.count > 200 { name.removeLast() }
        return (parent == "/" ? "" : parent) + "/.\(name).\(id.text).kedge-part"
    }

    /// The directory that holds a path.
    static func directory(of path: String) -> String {
        let parts = path.split(separator: "/").dropLast()
        return "/" + parts.joined(separator: "/")
    }

    /// Opens the file that the record describes; nil when it is not there any more, or not that one.
    ///
    /// - Parameter size: What it must measure; nil when any size will do.
    static func reopen(
        _ path: String, inode: UInt64, size: Int64?, files: any FileSystem
    ) throws -> TempFile? {
        guard let status = try files.status(of: path), status.isRegularFile, status.inode == inode
        else { return nil }
        if let size, status.byteCount != size { return nil }
        return TempFile(file: try files.open(path, .readWrite), inode: inode)
    }

    /// Makes the file anew, sparse at its full size, after checking that the bytes will fit (R97).
    ///
    /// - Throws: `FileError`; one without space when the disk has less than `size`.
    static func create(_ path: String, size: Int64, files: any FileSystem) throws -> TempFile {
        let parent = directory(of: path)
        // The name holds our transfer's id: what is there is our own, from a run that was cut short.
        try files.remove(path)
        try requireSpace(size, at: parent, files: files)
        let file = try files.open(path, .createNew)
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
