internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// The files below the folders that `kedge upload -r` names.
struct FolderSources {
    let filter: PathFilter
    let followsLinks: Bool
    /// Path on the server in place of the folder's name; nil for that.
    let prefix: String?
    /// Names something that is left out.
    let skip: (_ path: String, _ message: String) -> Void

    /// Returns the files in order. Those that cannot be uploaded have the reason.
    func files(in names: [String]) -> [UploadSourceFile] {
        var sources: [UploadSourceFile] = []
        for name in names {
            var facts = stat()
            guard unsafe stat(name, &facts) == 0, facts.st_mode & S_IFMT == S_IFDIR else {
                let last = FilePath.components(of: name).last { !$0.isEmpty } ?? name
                sources.append(UploadSourceFile(path: name, remotePath: joined(prefix, last)))
                continue
            }
            sources += files(inFolder: name)
        }
        return refusingConflicts(sources)
    }

    private func files(inFolder folder: String) -> [UploadSourceFile] {
        let scan = FolderScan(of: folder, filter, followsLinks: followsLinks)
        let root = prefix ?? FolderScan.name(of: folder) ?? ""
        var sources = scan.files.map { found in
            UploadSourceFile(
                path: joined(folder, found.path), remotePath: joined(root, found.path))
        }
        for omission in scan.omissions {
            let place = joined(folder, omission.path)
            guard omission.isFailure else {
                skip(place, "skipped: \(omission.reason).")
                continue
            }
            sources.append(
                UploadSourceFile(
                    path: place,
                    refusal: TransferError(
                        .fileMissing, operation: "read folder", resource: place,
                        explanation: "It cannot be read: \(omission.reason).")))
        }
        return sources
    }

    /// Refuses files of which a download could return only one, and those that it would refuse.
    private func refusingConflicts(_ sources: [UploadSourceFile]) -> [UploadSourceFile] {
        var byRemotePath: [[UInt8]: String] = [:]
        // By bytes: two names may differ only in their Unicode form.
        var byPath: [[UInt8]: [UInt8]] = [:]
        return sources.compactMap { source in
            guard source.refusal == nil, let remotePath = source.remotePath else { return source }
            let bytes = Array(remotePath.utf8)
            let path = Array(LocalPath.absolute(source.path).utf8)
            // Named twice: once is enough.
            if byPath[path] == bytes { return nil }
            let reason: String?
            if !FilePath.isSafe(remotePath) {
                reason =
                    "\(remotePath) cannot be its path on the server: a download would refuse it"
            } else if let other = byRemotePath[bytes] {
                reason = "\(other) has the same path on the server, \(remotePath)"
            } else if byPath[path] != nil {
                reason = "it is named twice, with different paths on the server"
            } else {
                reason = nil
                byRemotePath[bytes] = source.path
                byPath[path] = bytes
            }
            guard let reason else { return source }
            return UploadSourceFile(
                path: source.path,
                refusal: TransferError(
                    .usage, operation: "upload", resource: source.path,
                    explanation: "It is left out: \(reason)."))
        }
    }

    private func joined(_ folder: String?, _ path: String) -> String {
        guard let folder, !folder.isEmpty else { return path }
        return folder.hasSuffix("/") ? folder + path : "\(folder)/\(path)"
    }
}

/// A file that a command is to upload.
struct UploadSourceFile: Sendable {
    let path: String
    /// Path on the server; nil without one.
    var remotePath: String?
    /// Why it cannot be uploaded; nil if nothing is known against it.
    var refusal: TransferError?
    /// Size; nil if it cannot be read, which its transfer reports.
    let byteCount: Int64?
    let isFolder: Bool

    init(path: String, remotePath: String? = nil, refusal: TransferError? = nil) {
        self.path = path
        self.remotePath = remotePath
        self.refusal = refusal
        var facts = stat()
        let isThere = unsafe refusal == nil && stat(path, &facts) == 0
        byteCount = isThere && facts.st_mode & S_IFMT == S_IFREG ? Int64(facts.st_size) : nil
        isFolder = isThere && facts.st_mode & S_IFMT == S_IFDIR
    }

    /// Name in messages.
    var name: String { path }
}
