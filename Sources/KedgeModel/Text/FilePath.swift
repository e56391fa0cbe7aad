/// The path of a file below the folder that was uploaded, such as `trip/day 1/a.jpg`. Clients store
/// it as metadata of the upload; the server lists files by it and never uses it as a path itself.
public enum FilePath {
    /// Key of the path in the metadata of a session.
    public static let metadataKey = "path"
    /// Maximum length in bytes of UTF-8.
    public static let maxByteCount = 1024

    /// Whether the server stores the text as a path. It may still be one that must not become a
    /// file of a disk; see ``isSafe(_:)``.
    public static func isStorable(_ path: String) -> Bool {
        path.utf8.count <= maxByteCount && !path.utf8.contains(0)
    }

    /// Whether a file of this path stays below the folder in which it is created: the path is
    /// relative, has no empty, `.` or `..` component, and its names fit a file system.
    public static func isSafe(_ path: String) -> Bool {
        isStorable(path)
            && components(of: path).allSatisfy { name in
                (1...FileName.maxByteCount).contains(name.utf8.count)
                    && !name.utf8.elementsEqual(".".utf8) && !name.utf8.elementsEqual("..".utf8)
            }
    }

    /// Returns the names in a path, also empty ones.
    ///
    /// Splits at bytes, as a file system does: a `/` before a combining mark is one character with
    /// it, and splitting the characters would not find it.
    public static func components(of path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns a text that is equal for paths which some disks take for the same file: they differ
    /// only in case or in the Unicode form of their characters.
    public static func collisionKey(_ path: String) -> String {
        // Strings are compared in canonical form.
        path.lowercased()
    }
}
