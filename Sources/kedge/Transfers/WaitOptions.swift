internal import ArgumentParser
internal import KedgeClient

/// Limits of waiting and retries of a transfer.
struct WaitOptions: ParsableArguments {
    /// Longer than a router takes to start, and short enough to reveal a wrong address.
    private static let firstAnswerTimeout = Duration.seconds(60)

    @Option(
        help: ArgumentHelp(
            "How long to wait for an unavailable server: 90, 5m, 2h or forever.",
            discussion: "By default: 60 seconds for a server that has never answered, and forever "
                + "for others."))
    var maxWait: WaitArgument?
    @Option(help: "Consecutive retries without progress before the transfer fails.")
    var retries: Int?

    func validate() throws {
        guard retries ?? 0 >= 0 else { throw ValidationError("--retries must be 0 or more.") }
    }

    /// Applies the options to a configuration.
    func apply(to configuration: inout ClientConfiguration) {
        configuration.retry.maxRetries = retries
        configuration.serverTimeout = maxWait?.duration
        configuration.firstAnswerTimeout =
            maxWait == nil ? Self.firstAnswerTimeout : maxWait?.duration
    }
}

/// A waiting time as typed: a number of seconds, or one with a unit.
struct WaitArgument: ExpressibleByArgument {
    private static let secondsOfUnits: [Character: Int64] = ["s": 1, "m": 60, "h": 3600]

    /// Nil for no limit.
    let duration: Duration?

    init?(argument: String) {
        guard argument != "forever" else {
            duration = nil
            return
        }
        let unit = argument.last.flatMap { Self.secondsOfUnits[$0] }
        guard let number = Int64(unit == nil ? argument : String(argument.dropLast())),
            (0...1_000_000).contains(number)
        else { return nil }
        duration = .seconds(number * (unit ?? 1))
    }
}
