internal import Foundation
internal import KedgeModel

/// The files of a folder, in the order of their names, and everything in it that is none.
struct FolderScan {
    /// A regular file.
    struct File {
        /// Path from the folder.
        var path: String
        var byteCount: Int64
    }

    /// Something that is left out, with the reason.
    struct Omission {
        var path: String
        var reason: String
        /// Whether data may be missing because of it.
        var isFailure: Bool
    }

    private(set) var files: [File] = []
    private(set) var omissions: [Omission] = []

    private let root: String
    private let filter: PathFilter
    private let followsLinks: Bool

    private struct Identity: Hashable {
        var device: UInt64
        var inode: UInt64
    }

    /// Reads the folder and all folders below it.
    ///
    /// - Parameters:
    ///   - root: Path of the folder.
    ///   - followsLinks: Whether a symbolic link counts as what it leads to.
    init(of root: String, _ filter: PathFilter, followsLinks: Bool) {
        self.root = root
        self.filter = filter
        self.followsLinks = followsLinks
        read("", above: [])
    }

    /// Name of the folder as part of a path on the server: the last component, also of `.` and of a
    /// path that ends with `/` or `..`. Nil for `/`.
    static func name(of root: String) -> String? {
        let resolved = unsafe realpath(root, nil)
        defer { unsafe free(resolved) }
        guard let resolved = unsafe resolved, let path = unsafe String(validatingCString: resolved)
        else { return nil }
        return FilePath.components(of: path).last { !$0.isEmpty }
    }

    private func place(of path: String) -> String {
        path.isEmpty ? root : root.hasSuffix("/") ? root + path : "\(root)/\(path)"
    }

    private mutating func omit(_ path: String, _ reason: String, isFailure: Bool = false) {
        omissions.append(Omission(path: path, reason: reason, isFailure: isFailure))
    }

    private mutating func read(_ folder: String, above: Set<Identity>) {
        guard let names = names(in: folder) else { return }
        var facts = stat()
        guard unsafe stat(place(of: folder), &facts) == 0 else {
            return omit(folder, Self.systemMessage, isFailure: true)
        }
        let identity = Identity(device: UInt64(facts.st_dev), inode: UInt64(facts.st_ino))
        guard !above.contains(identity) else {
            return omit(folder, "a link leads back to a folder above")
        }
        let countBefore = files.count + omissions.count
        for name in names.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
            add(folder.isEmpty ? name : "\(folder)/\(name)", above: above.union([identity]))
        }
        if names.isEmpty, countBefore == files.count + omissions.count {
            omit(folder.isEmpty ? "." : folder, "an empty folder")
        }
    }

    private mutating func add(_ path: String, above: Set<Identity>) {
        guard !filter.excludes(path) else { return }
        var facts = stat()
        guard unsafe lstat(place(of: path), &facts) == 0 else {
            return omit(path, Self.systemMessage, isFailure: true)
        }
        if facts.st_mode & S_IFMT == S_IFLNK {
            guard followsLinks else { return omit(path, "a symbolic link") }
            guard unsafe stat(place(of: path), &facts) == 0 else {
                return omit(path, "a symbolic link to nothing", isFailure: true)
            }
        }
        switch facts.st_mode & S_IFMT {
        case S_IFDIR: read(path, above: above)
        case S_IFREG:
            guard !Self.isUnfinishedDownload(path) else {
                return omit(path, "an unfinished download")
            }
            guard filter.accepts(path) else { return }
            files.append(File(path: path, byteCount: Int64(facts.st_size)))
        default: omit(path, "neither a file nor a folder")
        }
    }

    /// Whether the name is that of a temporary file of a download: `.NAME.ID.kedge-part`.
    private static func isUnfinishedDownload(_ path: String) -> Bool {
        guard let name = FilePath.components(of: path).last, name.hasPrefix("."),
            name.hasSuffix(".kedge-part")
        else { return false }
        return name.dropLast(11).split(separator: ".").last.map { $0.count >= 32 } ?? false
    }

    /// Returns the names in a folder; nil if it cannot be read.
    private mutating func names(in folder: String) -> [String]? {
        guard let directory = unsafe opendir(place(of: folder)) else {
            omit(folder.isEmpty ? "." : folder, Self.systemMessage, isFailure: true)
            return nil
        }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        errno = 0
        while let entry = unsafe readdir(directory) {
            let bytes = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { raw in
                [UInt8](raw.prefix { $0 != 0 })
            }
            if let name = String(validating: bytes, as: UTF8.self) {
                if name != ".", name != ".." { names.append(name) }
            } else {
                let shown = String(decoding: bytes, as: UTF8.self)
                omit(
                    folder.isEmpty ? shown : "\(folder)/\(shown)",
                    "its name is not UTF-8; rename it", isFailure: true)
            }
            errno = 0
        }
        guard errno == 0 else {
            omit(folder.isEmpty ? "." : folder, Self.systemMessage, isFailure: true)
            return nil
        }
        return names
    }

    private static var systemMessage: String { unsafe String(cString: strerror(errno)) }
}
