import HTTPTypes
import Hummingbird
import KedgeDisk
import KedgeEngine
import KedgeFiles
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeServer
import KedgeTesting
import Logging
import NIOEmbedded

/// The server of a world: the real engine, disk store and routes, over a simulated disk and rows in
/// memory. It stops in every way that servers stop, and comes back.
final class ServerMachine: Sendable {
    /// One process.
    struct Process: Sendable {
        let number: Int
        let disk: SimulatedDisk
        let metadata: SimulatedMetadata
        let engine: TransferEngine
        let handle: @Sendable (Request, KedgeRequestContext) async throws -> Response
    }

    /// How a process ends.
    enum Stop: Sendable, CaseIterable {
        case drain, kill, powerCut
    }

    private struct State: Sendable {
        var process: Process?
        var processCount = 0
        /// The disk that the next process finds.
        var image = DiskImage()
        var metadata = SimulatedMetadata()
        /// Exchanges in the order of their arrival.
        var exchanges: [Exchange] = []
        /// Number of transactions when the rows were last compared with the disk.
        var seenTransactionCount = 0
    }

    private static let capacity = 4 << 20

    private let world: World
    private let history: History
    private let content: [UInt8]
    private let state = Mutex(State())

    init(_ world: World, history: History, content: [UInt8]) {
        self.world = world
        self.history = history
        self.content = content
        let metadata = SimulatedMetadata(durability: world.mutant?.durability ?? .immediate)
        state.withLock { $0.metadata = metadata }
    }

    /// The process that answers now; nil while none does.
    var process: Process? { state.withLock { $0.process } }

    /// Starts processes until one comes up, and checks what it finds.
    func start() async {
        while process == nil {
            let (number, image, metadata) = state.withLock { state in
                state.processCount += 1
                return (state.processCount, state.image, state.metadata)
            }
            let disk = SimulatedDisk(
                image, capacity: Self.capacity, mutation: world.mutant?.ofServerDisk)
            world.watch(disk, of: "server's disk")
            do {
                let process = try await makeProcess(number, disk, metadata)
                await history.check(process.engine, content: content)
                state.withLock { $0.process = process }
                world.note("server \(number) is up")
            } catch {
                world.note("server \(number) did not come up")
                state.withLock {
                    $0.image = disk.powerOff()
                    $0.metadata = metadata.cut()
                }
                await world.wait(.seconds(1))
            }
        }
    }

    private func makeProcess(
        _ number: Int, _ disk: SimulatedDisk, _ metadata: SimulatedMetadata
    ) async throws -> Process {
        let pool = world.scheduler.makePool()
        let bytes = try await DiskStore.open(
            "/data", pool: pool, fileSystem: disk, reserveByteCount: 0)
        var configuration = EngineConfiguration()
        configuration.chunkSizes = 256...65_536
        configuration.chunkSizeMultiple = 1
        configuration.bufferCapacity = 700
        configuration.checkpointByteCount = 2000
        configuration.minCheckpointByteCount = 300
        let logger = Logger(label: "simulator") { _ in SwiftLogNoOpLogHandler() }
        let engine = TransferEngine(
            metadata: metadata, bytes: bytes, configuration: configuration, clock: world.clock,
            timer: SimulatedTimer(scheduler: world.scheduler), pool: pool,
            makeGenerator: world.makeGenerator, logger: logger)
        try await engine.recover()
        let routes = RouteTable(
            engine: engine, health: HealthRoutes(engine: engine, drain: DrainState()))
        let responder = routes.makeRouter(gate: RequestGate(allowedHosts: [])).buildResponder()
        return Process(number: number, disk: disk, metadata: metadata, engine: engine) {
            try await responder.respond(to: $0, context: $1)
        }
    }

    /// Ends the process; its work under way is lost.
    func stop(_ stop: Stop) async {
        let process = state.withLock { state in
            defer { state.process = nil }
            return state.process
        }
        guard let process else { return }
        world.note("server \(process.number) stops: \(stop)")
        world.count { $0.serverStops += 1 }
        if stop == .drain {
            await process.engine.interruptWriters()
        }
        let image = process.disk.powerOff()
        let metadata = process.metadata.cut()
        let seed = world.scheduler.draw { $0.next() }
        let exchanges = state.withLock { state in
            state.image = stop == .powerCut ? image.surviving(.random(seed: seed)) : image
            state.metadata = metadata
            defer { state.exchanges = [] }
            return state.exchanges
        }
        // A machine without power sends nothing. A process that ends has its connections reset.
        if stop != .powerCut { for exchange in exchanges { exchange.cut() } }
    }

    /// Compares the rows with the platter: the bytes that a row claims must survive a power cut
    /// now.
    ///
    /// - Parameter always: Whether to compare also when no row has changed since the last look.
    func checkRows(always: Bool = false) {
        guard let process else { return }
        let count = process.metadata.transactionCount
        let isNews = state.withLock { state in
            defer { state.seenTransactionCount = count }
            return state.seenTransactionCount != count
        }
        // Without power, nothing is claimed.
        guard isNews || always, let claims = try? process.metadata.durableClaims(), !claims.isEmpty
        else {
            return
        }
        let image = process.disk.image.surviving(.losesAll)
        world.count { $0.promisesChecked += claims.count }
        for claim in claims where !Self.isKept(claim, on: image) {
            world.report("a row claims bytes that a cut would take")
        }
    }

    private static func isKept(_ claim: DurableClaim, on image: DiskImage) -> Bool {
        let staging = claim.staging.map { "/data/staging/\($0.text.prefix(2))/\($0.text)" }
        let blob = claim.blob?.hex
        let path = blob.map { "/data/blobs/\($0.prefix(2))/\($0.dropFirst(2).prefix(2))/\($0)" }
        return [staging, path].compactMap { $0 }.contains { path in
            guard let bytes = image.content(at: path), claim.range.end <= Int64(bytes.count)
            else { return false }
            let found = bytes[Int(claim.range.start)..<Int(claim.range.end)]
            return SHA256Hasher.digest(of: Array(found)) == claim.digest
        }
    }

    /// Answers a request by the process that runs now. Without one there is no answer.
    func answer(_ request: Request, _ exchange: Exchange) async {
        guard let process else { return exchange.cut() }
        state.withLock { $0.exchanges.append(exchange) }
        defer { state.withLock { $0.exchanges.removeAll { $0 === exchange } } }
        let context = KedgeRequestContext(
            source: ApplicationRequestContextSource(
                channel: EmbeddedChannel(handler: nil, loop: world.eventLoop),
                logger: Logger(label: "simulator") { _ in SwiftLogNoOpLogHandler() }))
        // From the request on the session may be gone, whether an answer arrives or not.
        if request.method == .delete, let id = Self.sessionID(of: request) { history.released(id) }
        do {
            let response = try await process.handle(request, context)
            await remember(request, response, process)
            var fields = response.headers
            fields[.contentLength] = response.body.contentLength.map(String.init)
            try exchange.answer(.init(status: response.status.code, fields: fields))
            try await response.body.write(AnswerWriter(exchange: exchange, world: world))
        } catch {
            exchange.cut()
        }
    }

    private static func sessionID(of request: Request) -> SessionID? {
        let parts = request.uri.path.split(separator: "/").map(String.init)
        guard parts.count >= 3, parts[0] == "uploads" else { return nil }
        return SessionID(parts[2])
    }

    /// Records the promises of an answer. The answer of a dead process reaches no client.
    private func remember(
        _ request: Request, _ response: Response, _ process: Process
    ) async {
        guard let id = Self.sessionID(of: request) else { return }
        let parts = request.uri.path.split(separator: "/").map(String.init)
        let isSuccess = (200...299).contains(response.status.code)
        // The rows have at least what the answer says when it leaves. Reading a copy never fails.
        let rows = try? await process.metadata.survivor.progress(of: id, owner: .anonymous)
        switch (request.method, parts.count) {
        case (.put, 5):
            guard let index = Int(parts[4]) else { return }
            if isSuccess {
                history.received(index, of: id, isNew: response.status == .created)
            } else {
                history.refused(index, of: id)
            }
        // The server cancels a session whose creation failed half-way, and answers so.
        case (.get, 3) where isSuccess && rows?.record.state == .open:
            // A chunk can have two rows: its partial and a rival. The status offers one of them.
            let offered = rows.map { SessionLedger($0).status.partialChunks } ?? []
            let byteCounts = offered.map { ($0.index, $0.receivedBytes) }
            history.announced(Dictionary(uniqueKeysWithValues: byteCounts), of: id)
        case (.post, 4) where response.status == .ok:
            guard let file = rows?.record.fileID else {
                return world.report("a session was finalized and has no file")
            }
            history.finalized(id, as: file)
            checkRows(always: true)
        default: break
        }
    }
}
