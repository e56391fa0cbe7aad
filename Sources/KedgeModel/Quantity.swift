/// Sizes and times as people write them: a number, and a unit if they like.
package enum Quantity {
    private static let bytesOfUnits: [String: Int64] = [
        "": 1, "b": 1,
        "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
        "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
        "kb": 1000, "mb": 1_000_000, "gb": 1_000_000_000, "tb": 1_000_000_000_000,
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
        if let plain = WireInteger.parse(text) { return plain }
        guard let (number, unit) = split(text), let factor = bytesOfUnits[unit.lowercased()] else {
            return nil
        }
        // Whole numbers throughout: 4.1GB is exactly 4,100,000,000 bytes.
        let parts = number.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count <= 2, let digits = WireInteger.parse(parts.joined()) else { return nil }
        let (product, overflow) = digits.multipliedReportingOverflow(by: factor)
        guard !overflow else { return nil }
        var byteCount = product
        for _ in 0..<(parts.count == 2 ? parts[1].count : 0) {
            guard byteCount % 10 == 0 else { return nil }
            byteCount /= 10
        }
        return byteCount
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
