internal import Glibc

/// `rclone serve webdav` over a directory: a file server as people run it at home.
final class Rclone: Server {
    let name = "rclone webdav"
    let port: UInt16
    let process: BenchProcess
    private let directory: String

    init(_ bench: Bench, executable: String) throws {
        directory = try bench.scratch.makeDirectory("rclone")
        let files = "\(directory)/files"
        guard mkdir(files, 0o755) == 0 else { throw BenchFailure.system("mkdir \(files)") }
        port = try BenchSocket.freePort()
        process = try BenchProcess(
            executable, ["serve", "webdav", files, "--addr", "127.0.0.1:\(port)"],
            home: directory, log: "\(directory)/rclone.log")
        try waitUntilListening()
    }

    func discard() throws {
        // rclone ends with either after SIGTERM, whichever of its handlers is first.
        try process.stop(exitStatuses: [0, 128 + SIGTERM])
        Scratch.remove(directory)
    }
}
