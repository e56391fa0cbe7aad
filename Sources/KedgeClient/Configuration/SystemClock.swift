internal import KedgeFiles
internal import KedgeModel

extension Timestamp {
    static var current: Timestamp { SystemWallClock().now() }
}
