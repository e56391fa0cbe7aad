import KedgeFiles
import KedgeStoreTests

extension TemporaryDirectory {
    /// Writes a file of the text and returns its path.
    func write(_ text: String, to name: String) throws -> String {
        let path = "\(self.path)/\(name)"
        let file = try POSIXFileSystem().open(path, .openOrCreate)
        try file.truncate(to: 0)
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
        try file.close()
        return path
    }
}
