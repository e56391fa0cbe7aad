internal import Foundation

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
}
