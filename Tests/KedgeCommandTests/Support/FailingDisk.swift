import Foundation

/// A small disk with a file system of its own that can be made to fail as it does when its device reports
/// an error: read-only from one moment to the next, also for files that are open.
///
/// A plain remount is no substitute: the kernel refuses it while anything is open for writing.
final class FailingDisk: Sendable {
    /// Where it is mounted.
    let path: String
    private let directory: String

    init(mebibytes: Int) throws {
        directory = try Scene.makeDirectory("kedge-failing")
        path = "\(directory)/mounted"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false)
        guard FileManager.default.createFile(atPath: image, contents: nil),
            truncate(image, mebibytes << 20) == 0
        else { throw Failure("no image: \(errno)") }
        try Self.run("mkfs.ext4", ["-q", "-F", image])
        try attach()
    }

    deinit {
        umount2(path, Int32(MNT_DETACH))
        // Best effort: what stays is in the directory for temporary files.
        try? FileManager.default.removeItem(atPath: directory)
    }

    private var image: String { "\(directory)/image" }

    /// Takes no more writes until ``repair()``; what was not synced is lost.
    ///
    /// - Parameter process: Its user. It stands still meanwhile: a sync that is under way at that moment
    ///   can report success for bytes that the aborted journal drops (seen of ext4 in Linux 6.18), and
    ///   what is to be tested is what the user makes of a disk that is honest.
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

    /// True when no thread is in a call of the kernel any more.
    private static func isStopped(_ id: pid_t) throws -> Bool {
        let tasks = "/proc/\(id)/task"
        return try FileManager.default.contentsOfDirectory(atPath: tasks).allSatisfy { task in
            guard let stat = FileManager.default.contents(atPath: "\(tasks)/\(task)/stat") else {
                return true
            }
            // The name of the thread, in parentheses, may hold anything; the state follows it.
            let text = String(decoding: stat, as: UTF8.self)
            return text[(text.lastIndex(of: ")") ?? text.startIndex)...].dropFirst(2).first == "T"
        }
    }

    /// Mounts it anew, from its journal. Nothing on it may be open.
    func repair() throws {
        try Self.run("umount", [path])
        try attach()
    }

    private func attach() throws {
        try Self.run("mount", ["-o", "loop,errors=remount-ro", image, path])
    }

    /// True where there is the right to mount, and what it takes.
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
            throw Failure("\(program) \(arguments): \(process.terminationStatus)")
        }
    }
}
