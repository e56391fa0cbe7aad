import KedgeModel
import Testing

struct HTTPDateTests {
    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37.000Z"),
            ("Thu, 01 Jan 1970 00:00:00 GMT", "1970-01-01T00:00:00.000Z"),
            ("Thu, 29 Feb 2024 23:59:59 GMT", "2024-02-29T23:59:59.000Z"),
            ("Fri, 31 Dec 9999 23:59:59 GMT", "9999-12-31T23:59:59.000Z"),
        ])
    func `an HTTP date of the preferred form is read`(text: String, time: String) {
        #expect(Timestamp(httpDate: text)?.description == time)
    }

    @Test(arguments: [
        "", "120", "Sun, 06 Nov 1994 08:49:37", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 nov 1994 08:49:37 GMT", "Xxx, 06 Nov 1994 08:49:37 GMT",
        "Sun, 30 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, +6 Nov 1994 08:49:37 GMT", "Sun; 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994T08:49:37 GMT",
    ])
    func `an HTTP date of any other form is refused`(text: String) {
        #expect(Timestamp(httpDate: text) == nil)
    }

    @Test(arguments: [
        "S\u{301}un", "t\u{301}pdOO", "\u{1F1E6}\u{1F1E6} \u{FFFD}M",
        "Sun, 0\u{301} Nov 1994 08:49:37 GMT", "Su\u{301}, 06 Nov 1994 08:49:37 GM",
    ])
    func `text on which a date formatter can trap is refused`(text: String) {
        #expect(Timestamp(httpDate: text) == nil)
    }
}
