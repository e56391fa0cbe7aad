import Glibc
import KedgeTesting

/// Blocks a script until a test opens the latch or the timeout ends. It is a pipe because a script
/// has a thread and no task.
final class Latch: Sendable {
    private let readEnd: Int32
    private let writeEnd: Int32

    init() {
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0)
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    func open() {
        precondition(write(writeEnd, [1], 1) == 1)
    }

    func wait() {
        var entry = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        _ = poll(&entry, 1, Int32(LoopbackConnection.timeoutSeconds * 1000))
    }
}
