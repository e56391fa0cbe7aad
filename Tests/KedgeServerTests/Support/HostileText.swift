/// Hostile values for what a server parses.
enum HostileText {
    /// Values for small whole numbers, percent-encoded where a request line could not carry them.
    static let numbers = [
        "-1", "2147483648", "9007199254740992", "9223372036854775807", "9223372036854775808",
        "18446744073709551616", "1e3", "+1", "1.0", "0x1", "1%00", "%D9%A1",
        "%EF%BC%91", String(repeating: "9", count: 4000),
    ]

    /// Values for identifiers.
    static let identifiers = [
        "x", String(repeating: "0", count: 31), String(repeating: "0", count: 33),
        String(repeating: "A", count: 32), String(repeating: "g", count: 32),
        "%2e%2e%2f", "%00", "..", "'%20OR%201=1--",
        String(repeating: "0", count: 5000), "00000000000000000000000000000000",
    ]
}
