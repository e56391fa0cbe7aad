package import KedgeModel

/// A `Range` header (RFC 9110 section 14.2) held against a file.
package enum RangeHeader: Hashable, Sendable {
    /// No range to honour: absent, another unit, not well formed, or more than ``maxRangeCount``
    /// parts (a server may ignore the field, RFC 9110 section 14.2). The whole file is the answer.
    case whole
    /// The satisfiable ranges, in the order asked for; ranges that overlap or touch are one, so no
    /// byte of the file is sent twice (RFC 9110 section 15.3.7.2).
    case ranges([ByteRange])
    /// Well formed, but no byte of the file is in it.
    case unsatisfiable

    /// Most parts in one answer. zsync, which completes an old copy, asks for many small ranges.
    package static let maxRangeCount = 200

    /// Reads the header's value. Numbers too large for any file are clamped, never trapped on.
    package init(_ value: String?, fileSize: Int64) {
        guard let value, let equals = value.firstIndex(of: "="),
            value[..<equals].lowercased() == "bytes"
        else {
            self = .whole
            return
        }
        let specifications = value[value.index(after: equals)...]
            .split(separator: ",", omittingEmptySubsequences: false)
            .map { Self.trim($0) }.filter { !$0.isEmpty }
        var ranges: [ByteRange] = []
        for specification in specifications {
            switch Self.parse(specification, fileSize: fileSize) {
            case .malformed:
                self = .whole
                return
            case .empty:
                continue
            case .bytes(let range):
                ranges.append(range)
            }
        }
        guard !specifications.isEmpty else {
            self = .whole
            return
        }
        let runs = Self.coalesced(ranges)
        self =
            runs.isEmpty
            ? .unsatisfiable : runs.count <= Self.maxRangeCount ? .ranges(runs) : .whole
    }

    /// Each run of ranges stands where the first of them stood.
    private static func coalesced(_ ranges: [ByteRange]) -> [ByteRange] {
        var runs: [(place: Int, range: ByteRange)] = []
        for (place, range) in ranges.enumerated().sorted(by: { $0.element.start < $1.element.start }
        ) {
            if let last = runs.last, range.start <= last.range.end {
                let end = max(last.range.end, range.end)
                runs[runs.count - 1] = (
                    min(last.place, place), ByteRange(start: last.range.start, end: end)
                )
            } else {
                runs.append((place, range))
            }
        }
        return runs.sorted { $0.place < $1.place }.map(\.range)
    }

    private enum Specification {
        case malformed
        case empty
        case bytes(ByteRange)
    }

    private static func parse(_ text: Substring, fileSize: Int64) -> Specification {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return .malformed }
        if ends[0].isEmpty {
            guard let suffix = saturating(ends[1]) else { return .malformed }
            let start = max(0, fileSize - min(suffix, fileSize))
            return start < fileSize
                ? .bytes(ByteRange(start: start, end: fileSize)) : .empty
        }
        guard let first = saturating(ends[0]) else { return .malformed }
        let last: Int64
        if ends[1].isEmpty {
            last = Int64.max
        } else {
            guard let parsed = saturating(ends[1]), parsed >= first else { return .malformed }
            last = parsed
        }
        guard first < fileSize else { return .empty }
        return .bytes(ByteRange(start: first, end: min(last, fileSize - 1) + 1))
    }

    /// Digits only; a number that does not fit is the largest there is.
    private static func saturating(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return WireInteger.parse(text) ?? Int64.max
    }

    private static func trim(_ text: Substring) -> Substring {
        var slice = text.drop { $0 == " " || $0 == "\t" }
        while let last = slice.last, last == " " || last == "\t" { slice.removeLast() }
        return slice
    }
}
