internal import Glibc

/// The permissions that this process takes away from new files (umask(2)).
package enum FileCreationMask {
    /// Permissions of a new file that anyone may read whom the mask does not exclude.
    package static var newFilePermissions: UInt16 { 0o666 & ~current }

    /// Read from the kernel: umask(2) could only change it, for all threads. 022 where the kernel
    /// does not say.
    private static let current: UInt16 = {
        guard let file = fopen("/proc/self/status", "r") else { return 0o022 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, Int32(line.count), file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
            guard text.hasPrefix("Umask:") else { continue }
            let digits = text.dropFirst(6).filter { $0.isNumber }
            return UInt16(digits, radix: 8) ?? 0o022
        }
        return 0o022
    }()
}
