internal import Foundation
internal import KedgeClient
internal import KedgeLocks
internal import KedgeModel

/// A folder below which downloaded files keep their paths.
///
/// Paths come from a server and may be hostile: nothing outside the folder is created or opened,
/// and no symbolic link is followed below it. A program that may write to the folder can still put
/// a link there between the check and the download; see docs/THREAT_MODEL.md.
final class DestinationFolder: Sendable {
    /// Path as the user named it.
    private let path: String
    /// Folders whose names are durable: those that this run has synced.
    private let durable = Mutex<Set<String>>([])

    init(path: String) { self.path = path }

    /// Returns the path of a file.
    ///
    /// - Throws: `USAGE` for a path that leaves the folder.
    func place(of file: String) throws(TransferError) -> String {
        guard FilePath.isSafe(file) else {
            throw TransferError(
                .usage, operation: "download", resource: file,
                explanation: "This path would not stay in the folder; download it by its id.")
        }
        return path.hasSuffix("/") ? path + file : "\(path)/\(file)"
    }

    /// Creates the folders above a file, durably. Refuses a link in place of one of them, and in
    /// place of the file. Blocks.
    ///
    /// - Throws: `DESTINATION_EXISTS` if something else is there.
    func prepare(_ file: String) throws(TransferError) {
        var names = FilePath.components(of: file)
        guard let last = names.popLast() else { return }
        if unsafe mkdir(path, 0o777) != 0, errno != EEXIST {
            throw systemError(file, "create", path)
        }
        var folder = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw systemError(file, "open", path) }
        defer { close(folder) }
        try syncParent(of: folder, file)
        var known = ""
        for name in names {
            if unsafe mkdirat(folder, name, 0o777) != 0, errno != EEXIST {
                throw systemError(file, "create", name)
            }
            known += "/" + name
            try sync(folder, for: known, file)
            let inner = unsafe openat(
                folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard inner >= 0 else {
                guard errno == ELOOP || errno == ENOTDIR else {
                    throw systemError(file, "open", name)
                }
                throw TransferError(
                    .destinationExists, operation: "download", resource: file,
                    explanation: "A link or file is in place of the folder \(name).")
            }
            close(folder)
            folder = inner
        }
        var facts = stat()
        guard unsafe fstatat(folder, last, &facts, AT_SYMLINK_NOFOLLOW) == 0 else {
            guard errno == ENOENT else { throw systemError(file, "read", last) }
            return
        }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            throw TransferError(
                .destinationExists, operation: "download", resource: file,
                explanation: "A link, a folder or a device is in its place.")
        }
    }

    /// Makes the name of the folder itself durable: this run may have created it.
    private func syncParent(of folder: Int32, _ file: String) throws(TransferError) {
        guard !durable.withLock({ $0.contains("") }) else { return }
        let parent = unsafe openat(folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { throw systemError(file, "open the folder above", path) }
        defer { close(parent) }
        try sync(parent, for: "", file)
    }

    /// Makes a name in a folder durable, once in a run. Also one that was there already: a run that
    /// created it may have ended before its sync.
    private func sync(
        _ folder: Int32, for name: String, _ file: String
    ) throws(TransferError) {
        guard !durable.withLock({ $0.contains(name) }) else { return }
        guard fsync(folder) == 0 else { throw systemError(file, "sync", name) }
        durable.withLock { _ = $0.insert(name) }
    }

    private func systemError(_ file: String, _ verb: String, _ name: String) -> TransferError {
        let reason = unsafe String(cString: strerror(errno))
        return TransferError(
            errno == ENOSPC || errno == EDQUOT ? .diskFull : .usage, operation: "download",
            resource: file, explanation: "Cannot \(verb) \(name): \(reason).")
    }
}
