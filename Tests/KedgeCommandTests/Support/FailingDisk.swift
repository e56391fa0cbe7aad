import Foundation
import KedgeTesting

/// A small disk with its own file system, which a test can make fail as after a device error: it
/// turns read-only at once, also for open files.
///
/// A plain remount is no substitute: the kernel refuses it while a file is open for writing.
final class FailingDisk: Sendable {
    /// The mount point.
    let path: String
    private let directory: String

    init(mebibytes: Int) throws {
        directory = try CommandEnvironment.makeDirectory("kedge-failing")
        path = "\(directory)/mounted"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false)
        guard FileManager.default.createFile(atPath: image, contents: nil),
            truncate(image, mebibytes << 20) == 0
        else { throw TestFailure("no image: \(errno)") }
        try Self.run("mkfs.ext4", ["-q", "-F", image])
        try attach()
    }

    deinit {
        umount2(path, Int32(MNT_DETACH))
        // Best effort: leftovers stay in the directory for temporary files.
        try? FileManager.default.removeItem(atPath: directory)
    }

    private var image: String { "\(directory)/image" }

    /// Refuses writes until ``repair()``; unsynced bytes are lost.
    ///
    /// - Parameter process: The user of the disk, which is stopped meanwhile. A sync that is under
    ///   way at that moment can report success for bytes that the aborted journal drops (seen with
    ///   ext4 in Linux 6.18), and the tests are about the user of an honest disk.
    func fail(under process: ChildProcess) async throws {
        process.signal(SIGSTOP)
        try await eventually("process \(process.id) stands still") {
            try Self.isStopped(process.id)
        }
        try Self.abort(path)
        process.signal(SIGCONT)
    }

    private static func abort(_ path: String) throws {
        try run("mount", ["-o", "remount,abort", path])
    }

    /// Whether no thread of the process is in a system call any more.
    private static func isStopped(_ id: pid_t) throws -> Bool {
        let tasks = "/proc/\(id)/task"
        return try FileManager.default.contentsOfDirectory(atPath: tasks).allSatisfy { task in
            guard let stat = FileManager.default.contents(atPath: "\(tasks)/\(task)/stat") else {
                return true
            }
            // The name of the thread, in parentheses, may contain any character; the state follows
            // it.
            let text = String(decoding: stat, as: UTF8.self)
            return text[(text.lastIndex(of: ")") ?? text.startIndex)...].dropFirst(2).first == "T"
        }
    }

    /// Mounts the disk again, from its journal. No file on it may be open.
    func repair() throws {
        try Self.run("umount", [path])
        try attach()
    }

    private func attach() throws {
        try Self.run("mount", ["-o", "loop,errors=remount-ro", image, path])
    }

    /// Whether the process may mount, and the programs for that exist.
    static let isAvailable: Bool = {
        guard SmallDisk.isAvailable, let disk = try? FailingDisk(mebibytes: 8) else { return false }
        return (try? abort(disk.path)) != nil
    }()

    private static func run(_ program: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw TestFailure("\(program) \(arguments): \(process.terminationStatus)")
        }
    }
}
