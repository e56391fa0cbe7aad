/// A point in time with millisecond resolution, as stores and RFC 3339 text represent it.
public struct Timestamp: Hashable, Comparable, Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    public var millisecondsSinceEpoch: Int64

    /// Accepts any count; times before 1970 are negative.
    public init(millisecondsSinceEpoch: Int64) {
        self.millisecondsSinceEpoch = millisecondsSinceEpoch
    }

    /// Returns true when the left time is earlier.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.millisecondsSinceEpoch < right.millisecondsSinceEpoch
    }

    /// Returns the time `duration` later; saturates instead of trapping.
    public func advanced(by duration: Duration) -> Timestamp {
        let parts = duration.components
        let limit = Int64.max / 4
        let seconds = min(max(parts.seconds, -limit / 1000), limit / 1000)
        let milliseconds = seconds * 1000 + parts.attoseconds / 1_000_000_000_000_000
        let (sum, overflow) = millisecondsSinceEpoch.addingReportingOverflow(milliseconds)
        let saturated = milliseconds < 0 ? -limit : limit
        return Timestamp(
            millisecondsSinceEpoch: overflow ? saturated : min(max(sum, -limit), limit))
    }

    /// Returns the time from `other` to this one.
    public func duration(since other: Timestamp) -> Duration {
        .milliseconds(millisecondsSinceEpoch) - .milliseconds(other.millisecondsSinceEpoch)
    }
}

extension Timestamp: CustomStringConvertible, Codable {
    /// RFC 3339 text in UTC with milliseconds, for example `2026-11-21T01:30:08.000Z`.
    public var description: String {
        let dayMilliseconds: Int64 = 86_400_000
        let days = Self.floorDivide(millisecondsSinceEpoch, dayMilliseconds)
        // Not by multiplying back, which would overflow on the first representable day.
        let remainder = millisecondsSinceEpoch % dayMilliseconds
        let rest = remainder < 0 ? remainder + dayMilliseconds : remainder
        let (year, month, day) = Self.civil(fromDays: days)
        let seconds = rest / 1000
        return Self.pad(year, 4) + "-" + Self.pad(month, 2) + "-" + Self.pad(day, 2) + "T"
            + Self.pad(seconds / 3600, 2) + ":" + Self.pad(seconds / 60 % 60, 2) + ":"
            + Self.pad(seconds % 60, 2) + "." + Self.pad(rest % 1000, 3) + "Z"
    }

    /// Parses RFC 3339 text in UTC (`Z`), with or without a fraction; nil for anything else.
    public init?(_ text: String) {
        let characters = Array(text.utf8)
        guard characters.count >= 20, characters.last == UInt8(ascii: "Z") else { return nil }
        func number(_ start: Int, _ count: Int) -> Int64? {
            WireInteger.parse(String(decoding: characters[start..<start + count], as: UTF8.self))
        }
        let separators: [(Int, Character)] = [
            (4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"),
        ]
        guard separators.allSatisfy({ characters[$0.0] == $0.1.asciiValue }) else { return nil }
        guard let year = number(0, 4), let month = number(5, 2), let day = number(8, 2),
            let hour = number(11, 2), let minute = number(14, 2), let second = number(17, 2),
            (1...12).contains(month), hour < 24, minute < 60, second < 61,
            (1...Self.dayCount(year: year, month: month)).contains(day)
        else { return nil }
        var milliseconds: Int64 = 0
        if characters[19] == UInt8(ascii: ".") {
            let digits = characters[20..<characters.count - 1]
            guard !digits.isEmpty, digits.allSatisfy({ (48...57).contains($0) }),
                let value = WireInteger.parse(String(decoding: digits.prefix(3), as: UTF8.self))
            else { return nil }
            milliseconds = value * [100, 10, 1][digits.prefix(3).count - 1]
        } else if characters.count != 20 {
            return nil
        }
        let days = Self.days(year: year, month: month, day: day)
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
        // A leap second at the end of the year 9999 falls in a year without a text form.
        guard seconds < 253_402_300_800 else { return nil }
        self.init(millisecondsSinceEpoch: seconds * 1000 + milliseconds)
    }

    /// Decodes RFC 3339 text in UTC.
    ///
    /// - Throws: `DecodingError.dataCorrupted` for other text, also for offsets other than `Z`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let value = Timestamp(text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "a time is RFC 3339 text in UTC")
        }
        self = value
    }

    /// Encodes the text of ``description``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }

    private static func pad(_ value: Int64, _ width: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, width - text.count)) + text
    }

    private static func dayCount(year: Int64, month: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
        let quotient = value / divisor
        return value % divisor < 0 ? quotient - 1 : quotient
    }

    /// Returns the date of a day number in the proleptic Gregorian calendar of ISO 8601.
    private static func civil(fromDays days: Int64) -> (Int64, Int64, Int64) {
        let shifted = days + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthPart = (5 * dayOfYear + 2) / 153
        let month = monthPart < 10 ? monthPart + 3 : monthPart - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * monthPart + 2) / 5 + 1)
    }

    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = floorDivide(shifted, 400)
        let yearOfEra = shifted - era * 400
        let monthPart = month > 2 ? month - 3 : month + 9
        let dayOfYear = (153 * monthPart + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}
