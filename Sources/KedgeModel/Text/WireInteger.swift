/// Strict parsing of non-negative decimal integers from the wire.
public enum WireInteger {
    /// Parses ASCII digits only: no sign, no spaces, no exponent, no Unicode digits, no overflow.
    ///
    /// Every step is checked, because an arithmetic trap would let any client stop the process.
    /// Leading zeros are accepted because RFC 9110 allows them (`1*DIGIT`).
    public static func parse(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty else { return nil }
        var value: Int64 = 0
        for character in text.utf8 {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) else { return nil }
            let (shifted, shiftOverflow) = value.multipliedReportingOverflow(by: 10)
            let digit = Int64(character - UInt8(ascii: "0"))
            let (sum, sumOverflow) = shifted.addingReportingOverflow(digit)
            guard !shiftOverflow, !sumOverflow else { return nil }
            value = sum
        }
        return value
    }
}
