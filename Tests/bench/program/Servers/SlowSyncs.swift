internal import Glibc

/// Syncs that take longer, as on a disk that has no cache in front of it: a library that stands
/// between the server and the C library. strace(1) could delay them too, but it stops threads at
/// other calls as well, and the server then takes three times as long without any delay.
enum SlowSyncs {
    static let delayMilliseconds = 5

    /// Returns the words before a command that start it with slow syncs.
    ///
    /// - Throws: ``BenchFailure`` when there is no C compiler.
    static func prefix(_ bench: Bench) throws -> [String] {
        let directory = try bench.scratch.makeDirectory("slow-syncs")
        let (source, library) = ("\(directory)/slow_syncs.c", "\(directory)/slow_syncs.so")
        try TextFile.write(Self.source, to: source)
        let compiler = try BenchProcess(
            try Executable.require("cc"), ["-shared", "-fPIC", "-o", library, source],
            home: directory, log: "\(directory)/log")
        guard try compiler.wait(limit: 60).status == 0 else {
            throw BenchFailure("the C compiler failed")
        }
        return [try Executable.require("env"), "LD_PRELOAD=\(library)"]
    }

    static var areAvailable: Bool { Executable.find("cc") != nil }

    private static let source = """
        #include <sys/syscall.h>
        #include <unistd.h>
        static int after(int result) {
            usleep(\(delayMilliseconds * 1000));
            return result;
        }
        int fsync(int file) { return after(syscall(SYS_fsync, file)); }
        int fdatasync(int file) { return after(syscall(SYS_fdatasync, file)); }
        """
}
