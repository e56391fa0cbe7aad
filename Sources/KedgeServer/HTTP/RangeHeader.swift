package import KedgeModel

/// A `Range` header (RFC 9110 section 14.2) applied to a file.
package enum RangeHeader: Hashable, Sendable {
    /// No range to honor: the whole file is served. The header is absent, has another unit, is
    /// malformed, or has more than ``maxRangeCount`` ranges. A server may ignore the field (RFC
    /// 9110 section 14.2).
    case whole
    /// The satisfiable ranges in the requested order. Ranges that overlap or touch are coalesced,
    /// so no byte of the file is sent twice (RFC 9110 section 15.3.7.2).
    case ranges([ByteRange])
    /// Well-formed, but without a byte of the file.
    case unsatisfiable

    /// Maximum number of ranges in one response. zsync, which completes an old copy, requests many
    /// small ones.
    package static let maxRangeCount = 200

    /// Parses the header's value. Numbers too large for any file are clamped.
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

    /// Coalesces ranges. Each result takes the position of its first range.
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

    /// Parses digits. A number that does not fit becomes the largest possible one.
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
