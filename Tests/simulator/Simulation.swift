import KedgeEngine
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import NIOEmbedded

/// One world from its beginning to its end: a file is uploaded and downloaded while everything
/// fails. Then the weather calms down, and the rest must be done within a time limit.
final class Simulation: Sendable {
    /// The result of a run.
    struct Outcome: Sendable {
        let violations: [String]
        let counts: WorldCounts
        let traceHash: UInt64
    }

    /// Time limit in good weather: a world that is not done after it never ends.
    private static let timeLimit = Duration.seconds(3600)
    /// Maximum number of steps of one world. More steps mean a loop in which no time passes.
    private static let maxStepCount = 3_000_000

    private let world: World
    private let history: History
    private let server: ServerMachine
    private let client: ClientMachine
    private let content: [UInt8]
    private let isOver = Mutex(false)

    init(seed: UInt64, mutant: Mutant? = nil, isVerbose: Bool = false) throws {
        world = try World(seed: seed, mutant: mutant, isVerbose: isVerbose)
        let size = world.draw(0...9) == 0 ? 0 : world.draw(1...30_000)
        let chunkSize = [256, 1000, 4096, 16_384][world.draw(0...3)]
        content = world.scheduler.draw { $0.bytes(size) }
        history = History(world)
        server = ServerMachine(world, history: history, content: content)
        client = try ClientMachine(
            world, server: server, content: content, chunkSize: Int64(chunkSize))
    }

    func run() -> Outcome {
        TaskCapture.with(world.scheduler) {
            // The world's first task. It ends the loop below.
            Task.detached { [self] in
                await live()
                isOver.withLock { $0 = true }
            }
            while !isOver.withLock({ $0 }), step() {}
            if !isOver.withLock({ $0 }), world.violations.isEmpty {
                world.report("the world came to a stop")
            }
        }
        world.count { $0.steps = world.scheduler.stepCount }
        return Outcome(
            violations: world.violations, counts: world.counts,
            traceHash: world.scheduler.traceHash)
    }

    /// Runs one piece of work and checks the invariants of all times.
    private func step() -> Bool {
        guard world.scheduler.stepCount < Self.maxStepCount else { return false }
        let hasMore = world.scheduler.step()
        world.eventLoop.run()
        client.checkDestination()
        server.checkRows()
        return hasMore && world.violations.isEmpty
    }

    private func live() async {
        let trouble = Trouble(world: world, server: server, client: client)
        await server.start()
        client.start()
        trouble.beginMaintenance()
        trouble.begin()
        SecondClient(world: world, server: server, history: history, content: content).begin()
        await waitUntilDone(for: world.weather.length)
        world.note("the weather calms down")
        world.calmDown()
        await waitUntilDone(for: Self.timeLimit)
        guard client.isDone else { return world.report("no end was reached in good weather") }
        await checkEnd()
    }

    private func waitUntilDone(for limit: Duration) async {
        let end = world.scheduler.now + limit
        while !client.isDone, world.scheduler.now < end {
            await world.wait(.seconds(1))
        }
    }

    /// Checks that the file is on the server once, with the right bytes, and that nothing is left
    /// over.
    private func checkEnd() async {
        // A server that has just stopped is on its way back.
        while server.process == nil { await world.wait(.seconds(1)) }
        guard let process = server.process, let id = client.uploadedFile else {
            return world.report("the client never heard of its upload's end")
        }
        // Removes a fault that may still be planned.
        process.disk.plan(nil)
        process.metadata.heal()
        do {
            await history.check(process.engine, content: content)
            let file = try await process.engine.file(id, owner: .anonymous)
            if file.digest != SHA256Hasher.digest(of: content) {
                world.report("the file on the server is another one")
            }
            let files = try await process.engine.files(of: .anonymous, after: nil, limit: 100)
            // A client whose session is gone begins anew, and both may become files.
            if files.count > 1, !history.hasReleased, !world.clock.hasJumped {
                world.report("\(files.count) files came of one upload")
            }
        } catch {
            world.report("the end cannot be checked: \(String(reflecting: error))")
        }
        let paths = process.disk.image.paths
        let unowned = paths.filter { $0.hasPrefix("/data/quarantine/") }
        if !unowned.isEmpty { world.report("bytes without a session: \(unowned)") }
        if !client.leftovers.isEmpty { world.report("left at the client: \(client.leftovers)") }
    }
}
