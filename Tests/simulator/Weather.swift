import KedgeTesting

/// The kinds and rates of trouble in one world, drawn from its seed, so that worlds differ in kind
/// and not only in their dice.
struct Weather: Sendable {
    /// Probability for each request.
    var losesRequest = 0.0
    var cutsRequest = 0.0
    var flipsRequest = 0.0
    var losesAnswer = 0.0
    var cutsAnswer = 0.0
    var flipsAnswer = 0.0
    /// Probability that the request arrives again, a while later.
    var repeatsRequest = 0.0
    /// Probability that nothing moves until the client times out.
    var stalls = 0.0
    /// Maximum time of a part of a message.
    var maxLatency = Duration.milliseconds(20)
    /// Mean time between events; nil for never.
    var serverStops: Duration?
    var clientStops: Duration?
    var serverDiskFaults: Duration?
    var clientDiskFaults: Duration?
    var databaseFaults: Duration?
    var secondClientRequests: Duration?
    var jumps: Duration?
    /// Whether the second client may cancel sessions, too.
    var cancels = false
    /// Whether stops are power cuts. Other stops leave the page cache alone.
    var losesPower = false
    var fillsDisks = false
    /// Whether the command is given twice at once, so that two processes share the records.
    var hasTwins = false
    /// Duration of the weather.
    var length = Duration.seconds(300)

    static let calm = Weather()

    init() {}

    /// Draws the weather of a world: each kind of trouble is absent, rare or common.
    init(_ generator: inout SplitMix64) {
        func chance() -> Double {
            [0, 0, 0.03, 0.25][Int.random(in: 0..<4, using: &generator)]
        }
        func pause() -> Duration? {
            let seconds = [nil, nil, 40, 8, 2][Int.random(in: 0..<5, using: &generator)]
            return seconds.map { .seconds($0) }
        }
        losesRequest = chance()
        cutsRequest = chance()
        flipsRequest = chance() / 2
        losesAnswer = chance()
        cutsAnswer = chance()
        flipsAnswer = chance() / 2
        repeatsRequest = chance()
        stalls = chance() / 4
        maxLatency = .milliseconds([2, 50, 2000].randomElement(using: &generator) ?? 2)
        serverStops = pause()
        clientStops = pause()
        serverDiskFaults = pause()
        clientDiskFaults = pause()
        databaseFaults = pause()
        secondClientRequests = pause()
        jumps = Int.random(in: 0..<6, using: &generator) == 0 ? .seconds(60) : nil
        cancels = Int.random(in: 0..<4, using: &generator) == 0
        losesPower = Bool.random(using: &generator)
        hasTwins = Int.random(in: 0..<3, using: &generator) == 0
        fillsDisks = Int.random(in: 0..<3, using: &generator) == 0
        length = .seconds(Int64.random(in: 20...400, using: &generator))
    }
}
