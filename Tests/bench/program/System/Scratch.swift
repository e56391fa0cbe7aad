internal import Foundation
internal import Glibc

/// The directory of all written files, removed at the end.
final class Scratch: Sendable {
    let path: String
    private let counter = SharedValue(0)

    /// - Throws: ``BenchFailure`` when there is no such directory or too little space in it.
    init(in directory: String, neededByteCount: Int) throws {
        var facts = statvfs()
        guard statvfs(directory, &facts) == 0 else {
            throw BenchFailure.system("look at \(directory)")
        }
        let free = Int(facts.f_bavail) * Int(facts.f_frsize)
        guard free >= neededByteCount else {
            throw BenchFailure(
                "\(neededByteCount >> 20) MiB are needed in \(directory), \(free >> 20) are free")
        }
        var template = Array("\(directory)/kedge-bench.XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw BenchFailure.system("make a directory in \(directory)")
        }
        path = template.withUnsafeBufferPointer { buffer in
            buffer.baseAddress.map { String(cString: $0) } ?? directory
        }
    }

    /// Whether nothing here reaches a disk (tmpfs(5)), so that syncs cost nothing.
    var isInMemory: Bool {
        guard let mounts = try? TextFile.read("/proc/mounts") else { return false }
        var longest = 0
        var kind: Substring = ""
        for line in mounts.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count > 2 else { continue }
            let point = words[1] == "/" ? "/" : "\(words[1])/"
            // The longest mount point above the directory is its own; of equal ones, the last.
            guard path.hasPrefix(point), point.count >= longest else { continue }
            longest = point.count
            kind = words[2]
        }
        return kind == "tmpfs"
    }

    /// Makes a new directory with a name of its own.
    func makeDirectory(_ name: String) throws -> String {
        let number = counter.change { counter in
            counter += 1
            return counter
        }
        let directory = "\(path)/\(name)-\(number)"
        guard mkdir(directory, 0o755) == 0 else { throw BenchFailure.system("mkdir \(directory)") }
        return directory
    }

    /// Removes a file or a directory with its contents; a missing one is no error.
    static func remove(_ path: String) {
        // Leftovers are removed with the directory at the end.
        try? FileManager.default.removeItem(atPath: path)
    }

    func remove() {
        Self.remove(path)
    }

    /// Waits until the disks have written everything, so that the next sample does not pay for it.
    func settle() {
        sync()
    }
}
