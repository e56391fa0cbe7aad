internal import ArgumentParser
internal import KedgeClient
internal import KedgeModel

/// Limits of waiting and retries of a transfer.
struct WaitOptions: ParsableArguments {
    /// Longer than a router takes to start, and short enough to reveal a wrong address.
    private static let firstAnswerTimeout = Duration.seconds(60)

    @Option(
        help: ArgumentHelp(
            "How long to wait for an unavailable server: 90, 5m, 2h, 7d or forever.",
            discussion: "By default: 60 seconds for a server that has never answered, and forever "
                + "for others.", valueName: "time"))
    var maxWait: WaitArgument?
    @Option(
        help: ArgumentHelp(
            "Consecutive retries without progress before the transfer fails.",
            valueName: "count"))
    var retries: Int?

    func validate() throws {
        guard retries ?? 0 >= 0 else { throw ValidationError("--retries must be 0 or more.") }
    }

    /// Returns how long to wait for a server; nil for ever.
    func limit(ofKnownServer isKnown: Bool) -> Duration? {
        maxWait == nil && !isKnown ? Self.firstAnswerTimeout : maxWait?.duration
    }

    /// Applies the options to a configuration.
    func apply(to configuration: inout ClientConfiguration) {
        configuration.retry.maxRetries = retries
        configuration.serverTimeout = maxWait?.duration
        configuration.firstAnswerTimeout = limit(ofKnownServer: false)
    }
}

/// A waiting time as typed: a number of seconds, or one with a unit.
struct WaitArgument: ExpressibleByArgument {
    /// More than a hundred years. Larger values would only overflow in arithmetic.
    private static let maxSeconds: Int64 = 3_600_000_000

    /// Nil for no limit.
    let duration: Duration?

    init?(argument: String) {
        guard argument != "forever" else {
            duration = nil
            return
        }
        guard let seconds = Quantity.seconds(argument), (0...Self.maxSeconds).contains(seconds)
        else { return nil }
        duration = .seconds(seconds)
    }
}
