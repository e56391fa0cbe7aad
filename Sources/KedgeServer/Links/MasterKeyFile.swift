package import KedgeFiles
package import KedgeSecrets

/// The file with the master keys of a service, a key a line.
package struct MasterKeyFile: Sendable {
    /// Maximum size of the file: some hundreds of keys.
    static let maxByteCount = 64 << 10

    package let path: String
    /// Whether the file is at its default place in the data directory, where the service makes it.
    package let isDefault: Bool
    private let fileSystem: any FileSystem

    package init(path: String, isDefault: Bool, in fileSystem: any FileSystem = POSIXFileSystem()) {
        self.path = path
        self.isDefault = isDefault
        self.fileSystem = fileSystem
    }

    /// Reads the keys. Blocks.
    ///
    /// - Parameter mayCreate: Whether a file with a new key is made if there is none.
    /// - Throws: ``MasterKeyFileError``.
    package func load(mayCreate: Bool) throws -> MasterKeys {
        do {
            if mayCreate, try fileSystem.status(of: path) == nil { try create() }
            return try read()
        } catch let error as FileError {
            throw MasterKeyFileError(path: path, reason: .unusable(error))
        } catch let error as MasterKeysError {
            throw MasterKeyFileError(path: path, reason: .malformed(error))
        }
    }

    /// Makes the file with a new key, durable and readable by its user alone. A file that another
    /// process has just made stays.
    ///
    /// The key is written under another name first. A process that ends in between must not leave
    /// an empty file, which no later start could use.
    private func create() throws {
        let new = path + ".new"
        _ = try fileSystem.remove(new)
        let file = try fileSystem.open(new, .createNew)
        do {
            try Array("\(MasterKey.generate().text)\n".utf8).withUnsafeBytes { bytes in
                try file.write(bytes, at: 0)
            }
            try file.syncData()
            try file.close()
            try adopt(new)
        } catch {
            // The first error says why there is no file.
            try? file.close()
            _ = try? fileSystem.remove(new)
            throw error
        }
        try fileSystem.syncDirectory(directory)
    }

    /// Gives a written file its name, unless another file has it already.
    private func adopt(_ new: String) throws {
        do {
            try fileSystem.renameWithoutReplacing(new, to: path)
        } catch {
            guard error.code == .exists else { throw error }
            _ = try fileSystem.remove(new)
        }
    }

    private var directory: String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Follows links, because orchestrators present secrets as links.
    private func read() throws -> MasterKeys {
        let file = try fileSystem.open(path, .readFollowingLinks)
        do {
            let status = try file.status()
            guard status.isRegularFile, status.byteCount <= Self.maxByteCount else {
                throw MasterKeyFileError(path: path, reason: .notKeys)
            }
            let permissions = status.permissions ?? 0o600
            guard permissions & 0o077 == 0 else {
                throw MasterKeyFileError(path: path, reason: .readableByOthers(permissions))
            }
            let text = try Self.text(of: file)
            try file.close()
            return try MasterKeys(text: text)
        } catch {
            // The first error says why there is no key.
            try? file.close()
            throw error
        }
    }

    private static func text(of file: any OpenFile) throws -> String {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: maxByteCount, alignment: 1)
        defer {
            buffer.initializeMemory(as: UInt8.self, repeating: 0)
            buffer.deallocate()
        }
        var byteCount = 0
        while byteCount < maxByteCount {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[byteCount...])
            let count = try file.read(into: rest, at: Int64(byteCount))
            guard count > 0 else { break }
            byteCount += count
        }
        return String(decoding: buffer[..<byteCount], as: UTF8.self)
    }
}

/// A reason why the file of master keys cannot be used. It never has text of the file.
package struct MasterKeyFileError: Error, Sendable {
    package enum Reason: Sendable {
        case unusable(FileError)
        /// It is no regular file, or larger than any list of keys.
        case notKeys
        case malformed(MasterKeysError)
        case readableByOthers(UInt16)
    }

    package let path: String
    package let reason: Reason
}

extension MasterKeyFileError: CustomStringConvertible {
    /// A sentence that says what cures it.
    package var description: String {
        let file = "the master key file \(path)"
        return switch reason {
        case .unusable(let error) where error.code == .notFound:
            "\(file) does not exist: restore it from a backup, or name the right one in "
                + "secrets.masterKeyFile"
        case .unusable(let error): "\(file) cannot be used: \(error.debugDescription)"
        case .notKeys: "\(file) is not a file of keys"
        case .malformed(let error): "\(file) is not valid: \(error)"
        case .readableByOthers(let permissions):
            "\(file) is readable by others than its user (mode "
                + "\(String(permissions, radix: 8))): set its mode to 600"
        }
    }
}
