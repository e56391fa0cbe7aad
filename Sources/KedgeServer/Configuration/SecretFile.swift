internal import Foundation
internal import SystemPackage

/// A file with one secret, which only its owner may read.
enum SecretFile {
    /// A shorter secret could be guessed.
    private static let byteCounts = 16...1024

    /// Reads the secret: printable ASCII without spaces, in one line.
    ///
    /// - Parameter setting: The setting that names the file, for the error.
    /// - Throws: ``ConfigurationError``, never with text of the file.
    static func read(_ path: String, setting: String) throws -> [UInt8] {
        func failure(_ sentence: String) -> ConfigurationError {
            ConfigurationError("\(setting): the file \(path) \(sentence)")
        }
        let bytes: [UInt8]
        do {
            let file = try FileDescriptor.open(
                FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
            bytes = try file.closeAfter {
                // Of the open file: another one may get the name at any time.
                var record = stat()
                guard fstat(file.rawValue, &record) == 0, record.st_mode & S_IFMT == S_IFREG else {
                    throw failure("is not a regular file.")
                }
                guard record.st_mode & 0o077 == 0 else {
                    throw failure("can be read by others than its owner. Run: chmod 600 FILE")
                }
                var buffer = [UInt8](repeating: 0, count: byteCounts.upperBound + 2)
                let count = try buffer.withUnsafeMutableBytes { try file.read(into: $0) }
                return Array(buffer.prefix(count))
            }
        } catch let error as Errno {
            throw failure("cannot be read: \(error).")
        }
        let line = bytes.last == UInt8(ascii: "\n") ? bytes.dropLast() : bytes[...]
        guard byteCounts.contains(line.count),
            line.allSatisfy({ (UInt8(ascii: "!")...UInt8(ascii: "~")).contains($0) })
        else {
            throw failure(
                "must have one line of \(byteCounts.lowerBound) to \(byteCounts.upperBound) "
                    + "printable ASCII characters without spaces.")
        }
        return Array(line)
    }
}

extension ProxyIdentitySettings {
    /// Reads the file with the secret; nil if the address of the proxy is enough.
    ///
    /// - Throws: ``ConfigurationError``
    func readSecret() throws -> [UInt8]? {
        try secretFile.map { try SecretFile.read($0, setting: "proxy.secretFile") }
    }
}
