/// When memory is given back to the system: some seconds after many connections have gone, and again for a
/// minute, as sessions and buffers go later.
///
/// A value without a clock: it is told each second what happened in it.
package struct MemoryUpkeep: Equatable, Sendable {
    /// Connections whose memory is worth the work.
    static let closedCount = 64
    static let intervalSeconds = 10
    static let repetitions = 7

    private var closed = 0
    private var seconds = 0
    private var rest = 0

    package init() {}

    /// A second has passed.
    ///
    /// - Parameter count: Connections that were closed in it.
    /// - Returns: Whether to give memory back now.
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
