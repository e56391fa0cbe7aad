/// Decides when to return memory to the system: some seconds after many connections have closed,
/// and again for a minute, because sessions and buffers are released later.
///
/// A value without a clock: the caller reports each second.
package struct MemoryReleaseSchedule: Equatable, Sendable {
    /// Number of closed connections that makes the work worthwhile.
    static let closedCount = 64
    static let intervalSeconds = 10
    static let repetitions = 7

    private var closed = 0
    private var seconds = 0
    private var rest = 0

    package init() {}

    /// Records that a second has passed.
    ///
    /// - Parameter count: Connections closed in that second.
    /// - Returns: Whether to return memory now.
    package mutating func passed(closed count: Int) -> Bool {
        closed += count
        if closed >= Self.closedCount {
            closed = 0
            rest = Self.repetitions
        }
        guard rest > 0 else { return false }
        seconds += 1
        guard seconds >= Self.intervalSeconds else { return false }
        seconds = 0
        rest -= 1
        return true
    }
}
