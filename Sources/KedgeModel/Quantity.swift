/// Sizes and times as people write them: a number, and a unit if they like.
package enum Quantity {
    private static let bytesOfUnits: [String: Double] = [
        "": 1, "b": 1,
        "k": 0x1p10, "m": 0x1p20, "g": 0x1p30, "t": 0x1p40,
        "kib": 0x1p10, "mib": 0x1p20, "gib": 0x1p30, "tib": 0x1p40,
        "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    ]
    private static let secondsOfUnits: [String: Int64] = [
        "": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400,
    ]

    /// Returns the bytes of a size such as `4194304`, `4M`, `4MiB`, `1.5 GiB` or `10GB`.
    ///
    /// K, M, G and T are powers of 1024, with or without `iB`; with `B` alone they are powers of
    /// 1000. Upper and lower case mean the same.
    ///
    /// - Returns: Nil for other text, and for a size that is no whole number of bytes or too large.
    package static func byteCount(_ text: String) -> Int64? {
        // Exact beyond the 53 bits of a Double.
        if let plain = WireInteger.parse(text) { return plain }
        guard let (number, unit) = split(text), let factor = bytesOfUnits[unit.lowercased()],
            let value = Double(number)
        else { return nil }
        return Int64(exactly: value * factor)
    }

    /// Returns the seconds of a time such as `90`, `90s`, `5m`, `2h` or `7d`.
    ///
    /// - Returns: Nil for other text, and for a time that is too long.
    package static func seconds(_ text: String) -> Int64? {
        if let plain = WireInteger.parse(text) { return plain }
        guard let (number, unit) = split(text), let factor = secondsOfUnits[unit],
            let value = Int64(number)
        else { return nil }
        let (seconds, overflow) = value.multipliedReportingOverflow(by: factor)
        return overflow ? nil : seconds
    }

    /// Splits digits, with a point or not, from the letters after them and a space between.
    private static func split(_ text: String) -> (number: String, unit: String)? {
        let number = text.prefix { ("0"..."9").contains($0) || $0 == "." }
        var unit = text[number.endIndex...]
        if unit.first == " " { unit.removeFirst() }
        guard number.first.map({ $0 != "." }) ?? false, number.last != ".", !unit.isEmpty,
            unit.allSatisfy({ $0.isASCII && $0.isLetter })
        else { return nil }
        return (String(number), String(unit))
    }
}
