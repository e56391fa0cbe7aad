internal import Glibc
internal import KedgeFiles

/// A test's own directory, removed with everything in it when the value goes.
package final class TemporaryDirectory: Sendable {
    /// The path, without a slash at its end.
    package let path: String

    /// Makes the directory below the system's place for temporary files.
    package init() throws {
        var template = Array("/tmp/kedge-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw FileError(operation: "mkdtemp", path: "/tmp", number: errno)
        }
        path = template.withUnsafeBufferPointer { bytes in
            String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    deinit { Self.removeAll(path) }

    /// Permission bits of the file or directory at the path; nil when there is none.
    package static func mode(of path: String) -> UInt32? {
        var record = stat()
        return lstat(path, &record) == 0 ? record.st_mode & 0o777 : nil
    }

    /// Number of descriptors of this process whose files lie below the path.
    package func openDescriptorCount() throws -> Int {
        let files = POSIXFileSystem()
        return try files.list("/proc/self/fd").filter { name in
            var target = [CChar](repeating: 0, count: 4096)
            let count = readlink("/proc/self/fd/" + name, &target, target.count)
            let bytes = target.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
            return String(decoding: bytes, as: UTF8.self).hasPrefix(path)
        }.count
    }

    private static func removeAll(_ path: String) {
        let files = POSIXFileSystem()
        // A leftover in /tmp is no reason for a test to fail.
        for name in (try? files.list(path)) ?? [] {
            let child = path + "/" + name
            if (try? files.status(of: child))??.isDirectory == true {
                removeAll(child)
            } else {
                _ = try? files.remove(child)
            }
        }
        rmdir(path)
    }
}
