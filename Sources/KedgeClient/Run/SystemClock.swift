internal import KedgeFiles
internal import KedgeModel

extension Timestamp {
    /// The time of the system's clock.
    static var current: Timestamp { SystemWallClock().now() }
}
