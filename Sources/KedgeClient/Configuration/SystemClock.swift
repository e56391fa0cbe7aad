internal import KedgeFiles
package import KedgeModel

extension Timestamp {
    package static var current: Timestamp { SystemWallClock().now() }
}
