import KedgeClient
import Testing

/// A worker and the watcher of its lease end in any order.
struct RunEndTests {
    private static let stopped = RunEnd.failed(CancellationError())
    private static let byWatcher: [RunEnd] = [
        .command(.pause), .suspended, .lost(CancellationError()),
    ]

    @Test(arguments: byWatcher)
    func `a worker that the watcher stopped ends for the watcher's reason`(reason: RunEnd) {
        for end in [reason.combined(with: Self.stopped), Self.stopped.combined(with: reason)] {
            #expect("\(end)" == "\(reason)")
        }
    }

    @Test(arguments: byWatcher)
    func `a completed transfer stays completed`(reason: RunEnd) {
        for end in [reason.combined(with: .completed), RunEnd.completed.combined(with: reason)] {
            guard case .completed = end else {
                Issue.record("ended as \(end)")
                continue
            }
        }
    }
}
