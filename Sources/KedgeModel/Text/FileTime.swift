/// The modification time of a file, as precise as file systems have it.
///
/// Clients store it as metadata of the upload: RFC 3339 text in UTC, such as
/// `2026-11-25T21:41:33.123456789Z`.
package struct FileTime: Hashable, Sendable {
    /// Key of the time in the metadata of a session.
    package static let metadataKey = "mtime"
    private static let nanosecondsPerSecond: Int64 = 1_000_000_000
    /// Digits of a second's fraction that count.
    private static let digitCount = 9

    /// Nanoseconds since 1970-01-01T00:00:00Z; negative before.
    package let nanosecondsSinceEpoch: Int64

    /// Accepts any count.
    package init(nanosecondsSinceEpoch: Int64) {
        self.nanosecondsSinceEpoch = nanosecondsSinceEpoch
    }

    /// Converts a time; nil before the year 1678 and after 2261.
    package init?(_ time: Timestamp) {
        let (nanoseconds, overflow) = time.millisecondsSinceEpoch
            .multipliedReportingOverflow(by: Self.nanosecondsPerSecond / 1000)
        guard !overflow else { return nil }
        nanosecondsSinceEpoch = nanoseconds
    }

    /// Parses RFC 3339 text in UTC (`Z`), with or without a fraction. Digits after the ninth of a
    /// fraction are dropped.
    ///
    /// Nil for anything else, also for a time before the year 1678 or after 2261.
    package init?(_ text: String) {
        guard let time = Timestamp(text) else { return nil }
        // The text has its whole seconds in 19 bytes, then a point and the fraction, then Z.
        let digits = text.utf8.dropFirst(20).dropLast().prefix(Self.digitCount)
        var fraction: Int64 = 0
        for digit in digits { fraction = fraction * 10 + Int64(digit - UInt8(ascii: "0")) }
        for _ in digits.count..<Self.digitCount { fraction *= 10 }
        let (seconds, _) = Self.divide(time.millisecondsSinceEpoch, by: 1000)
        let (whole, isOverflow) = seconds.multipliedReportingOverflow(by: Self.nanosecondsPerSecond)
        let (sum, isSumOverflow) = whole.addingReportingOverflow(fraction)
        guard !isOverflow, !isSumOverflow else { return nil }
        nanosecondsSinceEpoch = sum
    }

    /// RFC 3339 text in UTC with nanoseconds.
    package var text: String {
        let (seconds, rest) = parts
        let whole = Timestamp(millisecondsSinceEpoch: seconds * 1000).description
        let fraction = String(rest)
        let zeros = String(repeating: "0", count: Self.digitCount - fraction.count)
        return "\(whole.dropLast(4))\(zeros)\(fraction)Z"
    }

    /// Whole seconds since 1970, rounded down, and the nanoseconds after them.
    package var parts: (seconds: Int64, nanoseconds: Int64) {
        Self.divide(nanosecondsSinceEpoch, by: Self.nanosecondsPerSecond)
    }

    private static func divide(
        _ value: Int64, by divisor: Int64
    ) -> (seconds: Int64, nanoseconds: Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
