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
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private static let maxRunningCount = 2

    private let waitingLimit: Int
    private var lines: [OwnerID: Line] = [:]

    /// - Parameter waitingLimit: Largest number of operations of one owner that may wait.
    init(waitingLimit: Int) { self.waitingLimit = waitingLimit }

    /// Waits for the owner's turn. Each call that returns needs a ``leave(_:)``.
    ///
    /// - Throws: `unavailable` when too many operations of the owner wait.
    func enter(_ owner: OwnerID) async throws(MetadataError) {
        guard lines[owner]?.runningCount == Self.maxRunningCount else {
            lines[owner, default: Line()].runningCount += 1
            return
        }
        guard lines[owner]?.waiting.count ?? 0 < waitingLimit else {
            throw .unavailable("too many operations of one owner wait for the database")
        }
        // The turn is handed over, so no other operation can take it in between.
        await withCheckedContinuation { lines[owner, default: Line()].waiting.append($0) }
    }

    /// Ends the turn of an operation.
    func leave(_ owner: OwnerID) {
        guard var line = lines[owner] else { return }
        if line.waiting.isEmpty {
            line.runningCount -= 1
            lines[owner] = line.runningCount == 0 ? nil : line
        } else {
            let next = line.waiting.removeFirst()
            lines[owner] = line
            next.resume()
        }
    }
}
