internal import KedgeModel

extension Timestamp {
    private static let dayNames = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let monthNames = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// The time as an HTTP date (RFC 9110 section 5.6.7), for example `Sun, 06 Nov 1994 08:49:37
    /// GMT`. Valid for the years 1970 to 9999. Fractions of a second are omitted.
    var httpDate: String {
        let text = Array(description.utf8)
        func part(_ range: Range<Int>) -> String { String(decoding: text[range], as: UTF8.self) }
        let days = millisecondsSinceEpoch / 86_400_000
        // The first day of the epoch was a Thursday.
        let dayName = Self.dayNames[Int(days % 7)]
        let month = WireInteger.parse(part(5..<7)) ?? 1
        return "\(dayName), \(part(8..<10)) \(Self.monthNames[Int(month) - 1]) \(part(0..<4)) "
            + "\(part(11..<19)) GMT"
    }
}
