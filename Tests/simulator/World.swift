import KedgeLocks
import KedgeModel
import KedgeTesting
import NIOEmbedded

/// A promise that a part of the world breaks, to show that the simulation notices.
enum Mutant: String, Sendable, CaseIterable {
    case serverData = "server-data"
    case serverNames = "server-names"
    case serverRows = "server-rows"
    case clientData = "client-data"
    case clientNames = "client-names"

    var ofServerDisk: SimulatedDisk.Mutation? {
        switch self {
        case .serverData: .ignoresSyncData
        case .serverNames: .ignoresSyncDirectory
        default: nil
        }
    }

    var ofClientDisk: SimulatedDisk.Mutation? {
        switch self {
        case .clientData: .ignoresSyncData
        case .clientNames: .ignoresSyncDirectory
        default: nil
        }
    }

    var durability: SimulatedMetadata.Durability {
        self == .serverRows ? .late(transactions: 1) : .immediate
    }
}

/// The state that all parts of a simulated world share: its time, its generator, its weather and
/// the violations found.
final class World: Sendable {
    let scheduler: Scheduler
    let clock: SimulatedWallClock
    /// The event loop of the server's connections; run after each step.
    let eventLoop = EmbeddedEventLoop()
    /// A real directory for the client's SQLite database.
    let directory: TemporaryDirectory
    let mutant: Mutant?
    private let weatherNow: Mutex<Weather>
    private let found = Mutex<[String]>([])
    private let counters = Mutex(WorldCounts())
    private let isVerbose: Bool

    init(seed: UInt64, mutant: Mutant?, isVerbose: Bool) throws {
        self.mutant = mutant
        scheduler = Scheduler(seed: seed)
        clock = SimulatedWallClock(scheduler)
        directory = try TemporaryDirectory()
        weatherNow = Mutex(scheduler.draw { Weather(&$0) })
        self.isVerbose = isVerbose
    }

    var weather: Weather { weatherNow.withLock { $0 } }
    var violations: [String] { found.withLock { $0 } }
    var counts: WorldCounts { counters.withLock { $0 } }

    /// Stops new trouble.
    func calmDown() { weatherNow.withLock { $0 = .calm } }

    func report(_ violation: String) {
        note("VIOLATION: \(violation)")
        found.withLock { $0.append(violation) }
    }

    func count(_ change: (inout WorldCounts) -> Void) { counters.withLock { change(&$0) } }

    /// Records an event, which is a part of the trace.
    func note(_ text: String) {
        scheduler.trace(text)
        if isVerbose { print("\(scheduler.now) \(text)") }
    }

    /// Prints the calls that change a disk, for a reader of one world's log.
    func watch(_ disk: SimulatedDisk, of owner: String) {
        guard isVerbose else { return }
        disk.observe { [scheduler] _, call in print("\(scheduler.now)   \(owner): \(call)") }
    }

    func isLucky(_ chance: Double) -> Bool {
        guard chance > 0 else { return false }
        return scheduler.draw { Double.random(in: 0..<1, using: &$0) } < chance
    }

    func draw(_ range: ClosedRange<Int>) -> Int {
        scheduler.draw { Int.random(in: range, using: &$0) }
    }

    /// Draws a time around the mean, sometimes much shorter or longer.
    func draw(around mean: Duration) -> Duration {
        mean * scheduler.draw { Double.random(in: 0.02..<2, using: &$0) }
    }

    /// Waits in the world's time. A cancelled wait counts as over.
    func wait(_ duration: Duration) async { try? await scheduler.sleep(for: duration) }

    /// Waits for the latency of a part of a message.
    func awaitLatency() async {
        let longest = weather.maxLatency
        let part = scheduler.draw { Double.random(in: 0..<1, using: &$0) }
        await wait(longest * (part * part))
    }

    var makeGenerator: @Sendable () -> AnyGenerator {
        { [scheduler] in AnyGenerator(SplitMix64(seed: scheduler.draw { $0.next() })) }
    }
}

/// Counts of events in worlds, for the report.
struct WorldCounts: Sendable {
    var requests = 0
    var cutExchanges = 0
    var serverStops = 0
    var clientStops = 0
    var diskFaults = 0
    var promisesChecked = 0
    var steps = 0

    static func += (left: inout WorldCounts, right: WorldCounts) {
        left.requests += right.requests
        left.cutExchanges += right.cutExchanges
        left.serverStops += right.serverStops
        left.clientStops += right.clientStops
        left.diskFaults += right.diskFaults
        left.promisesChecked += right.promisesChecked
        left.steps += right.steps
    }
}
