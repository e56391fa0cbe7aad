internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// A folder below which downloaded files keep their paths.
///
/// Paths come from a server and may be hostile: nothing outside the folder is created or opened,
/// and no symbolic link is followed below it.
struct DestinationFolder: Sendable {
    /// Path as the user named it.
    let path: String

    /// Returns the path of a file, or why it cannot be created.
    ///
    /// - Throws: `USAGE` for a path that leaves the folder.
    func place(of file: String) throws(TransferError) -> String {
        guard FilePath.isSafe(file) else {
            throw refusal(file, "This path would not stay in the folder; download it by its id.")
        }
        return path.hasSuffix("/") ? path + file : "\(path)/\(file)"
    }

    /// Creates the folders above a file, durably. Refuses a link in place of one of them, and in
    /// place of the file.
    ///
    /// - Throws: `DESTINATION_EXISTS` if something else is there.
    func prepare(_ file: String) throws(TransferError) {
        var names = file.split(separator: "/").map(String.init)
        guard let last = names.popLast() else { return }
        if unsafe mkdir(path, 0o777) != 0, errno != EEXIST {
            throw systemError(file, "create", path)
        }
        var folder = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw systemError(file, "open", path) }
        defer { close(folder) }
        for name in names {
            if unsafe mkdirat(folder, name, 0o777) == 0 {
                // A file is durable only if the names of its folders are.
                guard fsync(folder) == 0 else { throw systemError(file, "sync", name) }
            } else if errno != EEXIST {
                throw systemError(file, "create", name)
            }
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

    private func refusal(_ file: String, _ explanation: String) -> TransferError {
        TransferError(.usage, operation: "download", resource: file, explanation: explanation)
    }

    private func systemError(_ file: String, _ verb: String, _ name: String) -> TransferError {
        let reason = unsafe String(cString: strerror(errno))
        return TransferError(
            errno == ENOSPC || errno == EDQUOT ? .diskFull : .usage, operation: "download",
            resource: file, explanation: "Cannot \(verb) \(name): \(reason).")
    }
}
