internal import ArgumentParser
internal import KedgeModel

/// A limit of an owner as typed: a number, `none` or `default`.
enum LimitArgument: Equatable {
    /// The limit of the settings.
    case standard
    case unlimited
    case count(Int64)

    /// - Parameter parse: Reads the number, perhaps with a unit.
    init?(_ text: String, parse: (String) -> Int64?) {
        switch text {
        case "default": self = .standard
        case "none": self = .unlimited
        default:
            // Zero would look like a limit that permits nothing, and means no limit on the wire.
            guard let count = parse(text), count > 0 else { return nil }
            self = .count(count)
        }
    }

    /// The value of the wire: nil for the limit of the settings, 0 for none.
    var value: Int64? {
        switch self {
        case .standard: nil
        case .unlimited: 0
        case .count(let count): count
        }
    }

    /// Returns a value of the wire as it is typed.
    static func text(_ value: Int64?, _ format: (Int64) -> String) -> String {
        switch value {
        case nil: "default"
        case 0?: "none"
        case let count?: format(count)
        }
    }
}
