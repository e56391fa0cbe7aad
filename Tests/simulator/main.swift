import Foundation

/// The options of the simulator, which runs worlds of client, network, server and disks, one seed
/// after the other.
struct Options {
    static let usage = """
        usage: kedge-simulator [--seeds COUNT] [--first SEED] [--seconds LIMIT] [--verbose]
               kedge-simulator --mutants [--seeds COUNT]

        Exits with status 1 when a promise was broken, and says which seed shows it. With --mutants
        a part of each world breaks a promise, and the status is 1 when that was not noticed.
        """

    var seedCount = 200
    var firstSeed: UInt64 = 1
    var secondLimit = 3600.0
    var isVerbose = false
    var hasMutants = false

    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            switch option {
            case "--verbose": isVerbose = true
            case "--mutants": hasMutants = true
            default:
                guard let value = rest.popFirst(), set(option, to: value) else { return nil }
            }
        }
    }

    private mutating func set(_ option: String, to value: String) -> Bool {
        switch option {
        case "--seeds":
            guard let count = Int(value), count > 0 else { return false }
            seedCount = count
        case "--first":
            guard let seed = UInt64(value) else { return false }
            firstSeed = seed
        case "--seconds":
            guard let limit = Double(value), limit > 0 else { return false }
            secondLimit = limit
        default: return false
        }
        return true
    }

    var seeds: Range<UInt64> { firstSeed..<firstSeed + UInt64(seedCount) }
}

/// Restarts the program with deterministic hashing: otherwise Swift draws a number for each process
/// that orders its dictionaries.
func requireDeterministicHashing() {
    guard getenv("SWIFT_DETERMINISTIC_HASHING") == nil else { return }
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
    execv("/proc/self/exe", &arguments)
    fatalError("the simulator could not start itself again")
}

/// Runs worlds in which every part keeps its promises.
func simulate(_ options: Options) throws -> Int32 {
    let began = Date()
    var total = WorldCounts()
    var seedCount = 0
    for seed in options.seeds {
        if Date().timeIntervalSince(began) > options.secondLimit { break }
        let outcome = try Simulation(seed: seed, isVerbose: options.isVerbose).run()
        seedCount += 1
        total += outcome.counts
        // Runs some worlds twice: both runs must be equal.
        let isChecked = seed % 50 == 0
        let again = try isChecked ? Simulation(seed: seed).run().traceHash : outcome.traceHash
        guard outcome.violations.isEmpty, again == outcome.traceHash else {
            for violation in outcome.violations { print("seed \(seed): \(violation)") }
            if again != outcome.traceHash { print("seed \(seed): two runs differ") }
            print("again with: kedge-simulator --first \(seed) --seeds 1 --verbose")
            return 1
        }
    }
    print(
        "\(seedCount) seeds run, \(total.steps) steps, \(total.requests) requests, "
            + "\(total.cutExchanges) cut, \(total.serverStops) server stops, "
            + "\(total.clientStops) client stops, \(total.diskFaults) disk and database faults, "
            + "\(total.promisesChecked) promises checked, violations 0")
    return 0
}

/// Runs worlds in which one part breaks a promise; each one must be caught.
func simulateMutants(_ options: Options) throws -> Int32 {
    var survivors: [Mutant] = []
    for mutant in Mutant.allCases {
        let seed = try options.seeds.first { seed in
            try !Simulation(seed: seed, mutant: mutant).run().violations.isEmpty
        }
        print("\(mutant.rawValue): \(seed.map { "caught by seed \($0)" } ?? "NOT CAUGHT")")
        if seed == nil { survivors.append(mutant) }
    }
    let count = Mutant.allCases.count
    print("\(count - survivors.count) of \(count) mutants caught")
    return survivors.isEmpty ? 0 : 1
}

requireDeterministicHashing()
guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
    print(Options.usage)
    exit(2)
}
exit(try options.hasMutants ? simulateMutants(options) : simulate(options))
