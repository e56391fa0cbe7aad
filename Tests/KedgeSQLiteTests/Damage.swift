import KedgeFiles

/// Damage that a failing disk does to a file.
enum Damage {
    /// Overwrites some bytes.
    static func overwrite(_ path: String, at offset: Int64, with text: String) throws {
        let file = try POSIXFileSystem().open(path, .readWrite)
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: offset) }
        try file.close()
    }
}
