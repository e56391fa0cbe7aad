/// What the directory of a service's data has to be, so that only the service changes it, and what it syncs
/// is durable.
package struct DirectoryDemands: Sendable, Hashable {
    /// A directory in which data would not be safe.
    package enum Violation: Error, Hashable, Sendable {
        /// Group or others may write in it.
        case writableByOthers(permissions: UInt16)
        /// It is on a file system of a network.
        case onNetwork(fileSystem: String)
    }

    /// Whether group and others may write in the directory.
    package var allowsOtherWriters: Bool
    /// Whether the directory may be on a file system of a network.
    package var allowsNetwork: Bool

    /// Demands everything unless told otherwise.
    package init(allowsOtherWriters: Bool = false, allowsNetwork: Bool = false) {
        self.allowsOtherWriters = allowsOtherWriters
        self.allowsNetwork = allowsNetwork
    }

    /// Reads `shared`, `network` or both, by comma; nil for any other text.
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

    /// Looks at the directory, or at what it would be made in. Blocks.
    ///
    /// - Throws: ``Violation``, `FileError`.
    package func check(_ path: String, in fileSystem: any FileSystem) throws {
        // Behind a symbolic link it is the directory that counts, and not the link.
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
