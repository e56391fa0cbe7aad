/// The requirements for a data directory: only the service changes it, and synced data in it is
/// durable.
package struct DirectoryRequirements: Sendable, Hashable {
    /// A directory in which data would not be safe.
    package enum Violation: Error, Hashable, Sendable {
        /// The group or other users may write to it.
        case writableByOthers(permissions: UInt16)
        /// It is on a network file system.
        case onNetwork(fileSystem: String)
    }

    /// Whether the group and other users may write to the directory.
    package var allowsOtherWriters: Bool
    /// Whether the directory may be on a network file system.
    package var allowsNetwork: Bool

    /// Requires everything by default.
    package init(allowsOtherWriters: Bool = false, allowsNetwork: Bool = false) {
        self.allowsOtherWriters = allowsOtherWriters
        self.allowsNetwork = allowsNetwork
    }

    /// Parses `shared`, `network` or both, separated by a comma; nil for any other text.
    package init?(text: String) {
        self.init()
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            switch word.drop(while: { $0 == " " }) {
            case "shared": allowsOtherWriters = true
            case "network": allowsNetwork = true
            case "" where text.isEmpty: break
            default: return nil
            }
        }
    }

    /// Checks the directory, or the nearest existing parent for its file system. Blocks.
    ///
    /// - Throws: ``Violation``, `FileError`.
    package func check(_ path: String, in fileSystem: any FileSystem) throws {
        // Follows a symbolic link: the directory's own permissions count.
        let found = try fileSystem.status(of: path + "/.")
        if let permissions = found?.permissions, permissions & 0o022 != 0, !allowsOtherWriters {
            throw Violation.writableByOthers(permissions: permissions)
        }
        guard !allowsNetwork else { return }
        var place = path
        while try fileSystem.status(of: place + "/.") == nil {
            guard let slash = place.lastIndex(of: "/") else {
                place = "."
                break
            }
            place = String(place[..<slash])
        }
        if let name = try fileSystem.networkFileSystem(at: place + "/.") {
            throw Violation.onNetwork(fileSystem: name)
        }
    }
}
