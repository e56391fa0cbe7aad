extension Timestamp {
    private static let dayNames: Set = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    private static let months = [
        "Jan": "01", "Feb": "02", "Mar": "03", "Apr": "04", "May": "05", "Jun": "06", "Jul": "07",
        "Aug": "08", "Sep": "09", "Oct": "10", "Nov": "11", "Dec": "12",
    ]

    /// Parses an HTTP date (RFC 9110 section 5.6.7), for example `Sun, 06 Nov 1994 08:49:37 GMT`.
    ///
    /// Nil for anything else, also for the two obsolete forms. The day name need not match the
    /// date. Written by hand because Foundation's `DateFormatter` can trap on a letter followed by
    /// a combining mark, and any client can send such text.
    public init?(httpDate text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count == 29 else { return nil }
        func part(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
        guard Self.dayNames.contains(part(0..<3)), part(3..<5) == ", ", part(7..<8) == " ",
            let month = Self.months[part(8..<11)], part(11..<12) == " ", part(16..<17) == " ",
            part(25..<29) == " GMT"
        else { return nil }
        self.init("\(part(12..<16))-\(month)-\(part(5..<7))T\(part(17..<25))Z")
    }
}
