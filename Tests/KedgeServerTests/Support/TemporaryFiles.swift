import KedgeFiles
import KedgeTesting

extension TemporaryDirectory {
    /// Writes a file of the text and returns its path.
    func write(_ text: String, to name: String) throws -> String {
        try write(Array(text.utf8), to: name)
    }

    /// Writes a file of the bytes and returns its path.
    func write(_ bytes: [UInt8], to name: String) throws -> String {
        let path = "\(self.path)/\(name)"
        let file = try POSIXFileSystem().open(path, .openOrCreate)
        try file.truncate(to: 0)
        try bytes.withUnsafeBytes { try file.write($0, at: 0) }
        try file.close()
        return path
    }
}
