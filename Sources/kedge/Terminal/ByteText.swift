internal import Foundation
internal import KedgeClient
internal import KedgeModel

/// Sizes, rates and times for people, in binary units.
enum ByteText {
    static func size(_ byteCount: Int64) -> String {
        var value = Double(byteCount)
        for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
            if value < 1024 || unit == "TiB" {
                return unit == "B" ? "\(byteCount) B" : String(format: "%.1f %@", value, unit)
            }
            value /= 1024
        }
        return "\(byteCount) B"
    }

    static func rate(_ bytesPerSecond: Double) -> String { size(Int64(bytesPerSecond)) + "/s" }

    static func time(_ duration: Duration) -> String {
        let seconds = max(0, Int(duration / .seconds(1)))
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
        return hours > 0
            ? String(format: "%d:%02d:%02d", hours, minutes, seconds % 60)
            : String(format: "%d:%02d", minutes, seconds % 60)
    }

    /// Returns the time since a moment in its largest unit, such as `3d`.
    static func age(_ time: Timestamp, now: Timestamp = .current) -> String {
        let seconds = max(0, now.millisecondsSinceEpoch - time.millisecondsSinceEpoch) / 1000
        for (unit, length) in [("d", Int64(86_400)), ("h", 3600), ("m", 60)]
        where seconds >= length {
            return "\(seconds / length)\(unit)"
        }
        return "\(seconds)s"
    }
}
