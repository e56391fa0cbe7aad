import Foundation
import KedgeClient
import KedgeEngine
import KedgeFiles
import KedgeLocks
import KedgeModel
import KedgeTesting
import Logging

/// The client of a world: the real one, with its files on a simulated disk. Its process is killed
/// or loses power, and its user gives the same command again.
final class ClientMachine: Sendable {
    static let source = "/disk/source"
    static let destination = "/disk/copy"

    /// One process.
    private struct Process: Sendable {
        let disk: SimulatedDisk
        let link: SimulatedLink
        let task: Task<Void, Never>
    }

    private struct State: Sendable {
        var process: Process?
        var processCount = 0
        var image = DiskImage()
        var uploaded: FileID?
        /// Number of calls of the disk at the last look.
        var seenCallCount = 0
        var isDone = false
    }

    /// Space beside the source: for the destination, twice, and rows.
    private static let capacity = 2 << 20

    private let world: World
    private let server: ServerMachine
    private let content: [UInt8]
    private let chunkSize: Int64
    private let state = Mutex(State())

    init(_ world: World, server: ServerMachine, content: [UInt8], chunkSize: Int64) throws {
        self.world = world
        self.server = server
        self.content = content
        self.chunkSize = chunkSize
        let image = try Self.makeImage(content, databaseDirectories: Self.parents(of: path(1)))
        state.withLock { $0.image = image }
    }

    /// Whether the file was uploaded and downloaded.
    var isDone: Bool { state.withLock { $0.isDone } }
    /// The file on the server, once the client has reported it.
    var uploadedFile: FileID? { state.withLock { $0.uploaded } }
    /// The disk that is in use now; nil between two processes.
    var disk: SimulatedDisk? { state.withLock { $0.process?.disk } }

    /// Makes a disk that has had the source for a long time.
    private static func makeImage(
        _ content: [UInt8], databaseDirectories: [String]
    ) throws -> DiskImage {
        let disk = SimulatedDisk()
        for directory in ["/disk"] + databaseDirectories { try disk.makeDirectory(directory) }
        let file = try disk.open(source, .createNew)
        try content.withUnsafeBytes { try file.write($0, at: 0) }
        try file.syncData()
        try file.close()
        for directory in ["/", "/disk"] + databaseDirectories { try disk.syncDirectory(directory) }
        return disk.image
    }

    /// Directory of the database of a process.
    private func path(_ number: Int) -> String { "\(world.directory.path)/state-\(number)" }

    private static func parents(of path: String) -> [String] {
        let parts = path.split(separator: "/").dropLast()
        return parts.indices.map { "/" + parts[...$0].joined(separator: "/") }
    }

    /// Starts a process that goes on from the state that the last one left.
    func start() {
        let (number, image) = state.withLock { state in
            state.processCount += 1
            return (state.processCount, state.image)
        }
        let disk = SimulatedDisk(
            image, capacity: Self.capacity, mutation: world.mutant?.ofClientDisk)
        world.watch(disk, of: "client's disk")
        let link = SimulatedLink(world, server: server)
        // The state keeps the task and cancels it when the process ends.
        let task = Task.detached { [self] in await run(number, disk, link) }
        state.withLock { $0.process = Process(disk: disk, link: link, task: task) }
    }

    /// Ends the process in the middle of its work. The database keeps what was committed.
    func stop(losingPower: Bool) {
        let process = state.withLock { state in
            defer { state.process = nil }
            return state.process
        }
        guard let process else { return }
        world.count { $0.clientStops += 1 }
        world.note(losingPower ? "client loses power" : "client is killed")
        let image = process.disk.powerOff()
        process.link.takeDown()
        let seed = world.scheduler.draw { $0.next() }
        let number = state.withLock { state in
            state.image = losingPower ? image.surviving(.random(seed: seed)) : image
            return state.processCount
        }
        do {
            try Self.copyDatabase(from: path(number), to: path(number + 1))
        } catch {
            world.report("the simulator could not copy a database: \(error)")
        }
        // The rest of the process ends on its own database.
        process.task.cancel()
    }

    private static func copyDatabase(from old: String, to new: String) throws {
        let files = FileManager.default
        try files.createDirectory(atPath: new, withIntermediateDirectories: true)
        // The shared memory beside them is not copied: a machine that starts has none.
        for name in ["transfers.sqlite", "transfers.sqlite-wal"]
        where files.fileExists(atPath: "\(old)/\(name)") {
            try files.copyItem(atPath: "\(old)/\(name)", toPath: "\(new)/\(name)")
        }
    }

    /// Runs one process, or two at once on the same records.
    private func run(_ number: Int, _ disk: SimulatedDisk, _ link: SimulatedLink) async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<(world.weather.hasTwins ? 2 : 1) {
                group.addTask { await self.work(number, disk, link) }
            }
        }
    }

    /// Uploads, then downloads, repeating each until it succeeds.
    private func work(_ number: Int, _ disk: SimulatedDisk, _ link: SimulatedLink) async {
        while !Task.isCancelled {
            do {
                let client = try await makeClient(number, disk, link)
                if uploadedFile == nil { try await upload(client) }
                if let file = uploadedFile { try await download(file, client, disk) }
                try await client.close()
                if state.withLock({ $0.isDone }) { return }
            } catch {
                world.note("client: \(Self.code(of: error))")
            }
            await world.wait(.seconds(2))
        }
    }

    private static func code(of error: any Error) -> String {
        (error as? TransferError)?.code.rawValue ?? "\(type(of: error))"
    }

    private func makeClient(
        _ number: Int, _ disk: SimulatedDisk, _ link: SimulatedLink
    ) async throws -> TransferClient {
        try FileManager.default.createDirectory(
            atPath: path(number), withIntermediateDirectories: true)
        var configuration = ClientConfiguration(
            serverURL: SimulatedLink.address, stateDirectory: path(number))
        configuration.chunkSize = chunkSize
        configuration.logger = Logger(label: "simulator") { _ in SwiftLogNoOpLogHandler() }
        var environment = ClientEnvironment(
            files: disk, now: { [clock = world.clock] in clock.now() },
            sleep: { [scheduler = world.scheduler] in try await scheduler.sleep(for: $0) },
            makeGenerator: world.makeGenerator)
        environment.pause = environment.sleep
        // Records progress several times in each chunk.
        environment.checkpointLimits.noteByteCount = max(1, chunkSize / 4)
        environment.checkpointLimits.syncByteCount = max(1, chunkSize / 2)
        environment.makePool = { [scheduler = world.scheduler] _ in scheduler.makePool() }
        return try await TransferClient(
            configuration: configuration, transport: link, environment: environment)
    }

    private func upload(_ client: TransferClient) async throws {
        let id = try await client.enqueueUpload(path: Self.source)
        let result = try await client.run(id)
        world.note("upload: \(result.state.rawValue) \(result.errorCode?.rawValue ?? "")")
        guard result.state == .completed, let file = result.remoteFileID else { return }
        state.withLock { $0.uploaded = $0.uploaded ?? file }
    }

    private func download(
        _ file: FileID, _ client: TransferClient, _ disk: SimulatedDisk
    ) async throws {
        let id = try await client.enqueueDownload(.file(file), to: Self.destination)
        let result = try await client.run(id)
        world.note("download: \(result.state.rawValue) \(result.errorCode?.rawValue ?? "")")
        let isThere = disk.image.surviving(.losesAll).content(at: Self.destination) == content
        switch result.state {
        case .completed:
            if !isThere { world.report("a download was completed and is not durable") }
        case .failed where result.errorCode == .destinationExists:
            // No other client makes files here.
            world.report("a client took its own file for a stranger's")
        default: return
        }
        state.withLock { $0.isDone = true }
    }

    /// Files that were left beside the expected ones.
    var leftovers: [String] {
        disk?.image.paths.filter {
            $0.hasPrefix("/disk/") && ![Self.source, Self.destination].contains($0)
        } ?? []
    }

    /// Checks that the destination has nothing but the complete file, at any time.
    func checkDestination() {
        guard let disk else { return }
        let count = disk.callCount
        let isNews = state.withLock { state in
            defer { state.seenCallCount = count }
            return state.seenCallCount != count
        }
        guard isNews, let found = disk.image.content(at: Self.destination), found != content
        else { return }
        world.report("a wrong file of \(found.count) bytes is at the destination")
    }
}
