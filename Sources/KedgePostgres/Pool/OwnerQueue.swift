internal import KedgeEngine
internal import KedgeModel

/// Lets two operations of an owner run at once: one holds the owner's row, and the next one is
/// ready for it. The others wait here, in order.
///
/// They all need that row until they commit. Without the queue, the requests of one owner could
/// occupy every connection while they wait, and those of the other owners would wait with them.
actor OwnerQueue {
    private struct Line {
        var runningCount = 0
        var waiting: [Waiter] = []
    }

    private struct Waiter {
        let deadline: Deadline
        let continuation: CheckedContinuation<Bool, Never>
    }

    private static let maxRunningCount = 2

    private let waitingLimit: Int
    private let timeout: Duration
    private var lines: [OwnerID: Line] = [:]

    /// - Parameters:
    ///   - waitingLimit: Largest number of operations of one owner that may wait.
    ///   - timeout: Time after which a waiting operation gets no turn any more.
    init(waitingLimit: Int, timeout: Duration) {
        self.waitingLimit = waitingLimit
        self.timeout = timeout
    }

    /// Waits for the owner's turn. Each call that returns needs a ``leave(_:)``.
    ///
    /// - Throws: `unavailable` when too many operations of the owner wait, or this one has waited
    ///   for too long.
    func enter(_ owner: OwnerID) async throws(MetadataError) {
        guard lines[owner]?.runningCount == Self.maxRunningCount else {
            lines[owner, default: Line()].runningCount += 1
            return
        }
        guard lines[owner]?.waiting.count ?? 0 < waitingLimit else {
            throw .unavailable("too many operations of one owner wait for the database")
        }
        // The turn is handed over, so no other operation can take it in between.
        let hasTurn = await withCheckedContinuation { continuation in
            let waiter = Waiter(deadline: .after(timeout), continuation: continuation)
            lines[owner, default: Line()].waiting.append(waiter)
        }
        guard hasTurn else { throw .unavailable("the database is too busy for one owner") }
    }

    /// Ends the turn of an operation.
    func leave(_ owner: OwnerID) {
        guard var line = lines[owner] else { return }
        // The oldest wait first. While the database does not answer, each turn ends by its own
        // timeout: the operations behind it must not wait for one such time each.
        let late = line.waiting.prefix { $0.deadline.isOver }
        line.waiting.removeFirst(late.count)
        let next = line.waiting.first
        if next == nil { line.runningCount -= 1 } else { line.waiting.removeFirst() }
        lines[owner] = line.runningCount == 0 ? nil : line
        for waiter in late { waiter.continuation.resume(returning: false) }
        next?.continuation.resume(returning: true)
    }
}
