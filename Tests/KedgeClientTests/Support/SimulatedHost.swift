import KedgeClient
import KedgeFiles
import KedgeLocks
import KedgeModel
import KedgeTesting
import Logging

/// A machine with clients on a simulated disk, and the clients' server.
///
/// The clients' records are a real database in a directory of the real disk. The rest of the state
/// directory is under the same path on the simulated disk.
final class SimulatedHost: Sendable {
    static let folder = "/disk"
    static let source = "/disk/source.bin"
    static let destination = "/disk/out.bin"
    static let chunkSize: Int64 = 1024

    let disk: SimulatedDisk
    let server = FakeServer()
    private let directory: TemporaryDirectory
    private let isTold: Mutex<Bool>
    private let limits: CheckpointLimits
    private let watchesLink = Mutex(false)
    private let kept = Mutex<[SimulatedMoment]>([])

    /// Makes a machine that continues from a moment. Each machine has its own state directory, so a
    /// client that ends late does not write into the next one's.
    init(_ moment: SimulatedMoment, mutation: SimulatedDisk.Mutation? = nil) throws {
        let directory = try TemporaryDirectory()
        let path = Self.stateDirectory(in: directory)
        let image = try Self.place(moment.stateDirectory, at: path, in: moment.image)
        try POSIXFileSystem().makeDirectory(path)
        try moment.database.write(to: path)
        self.directory = directory
        disk = SimulatedDisk(image, mutation: mutation)
        isTold = Mutex(moment.isTold)
        limits = moment.limits
        server.state.withLock { $0 = moment.server }
    }

    private static func stateDirectory(in directory: TemporaryDirectory) -> String {
        directory.path + "/state"
    }

    private var stateDirectory: String { Self.stateDirectory(in: directory) }

    /// Returns the image with the state directory at this path: an earlier machine's or a new one.
    /// Its names are durable; unsynced changes in the rest of the image stay unsynced.
    private static func place(
        _ earlier: String?, at path: String, in image: DiskImage
    ) throws -> DiskImage {
        let disk = SimulatedDisk(image)
        let parts = path.split(separator: "/").dropLast()
        let parents = parts.indices.map { "/" + parts[...$0].joined(separator: "/") }
        for parent in parents { try disk.makeDirectory(parent) }
        if let earlier {
            try disk.rename(earlier, to: path)
            try disk.syncDirectory(TempFile.directory(of: earlier))
        } else {
            try disk.makeDirectory(path)
            // The bytes are on the real disk.
            try disk.open(path + "/transfers.sqlite", .createNew).close()
            try disk.syncDirectory(path)
        }
        for parent in ["/"] + parents { try disk.syncDirectory(parent) }
        return disk.image
    }

    /// Returns the machine between two commands, after a client has made its records.
    func prepared() async throws -> SimulatedMoment {
        try await makeClient().close()
        return moment(disk.image, before: "the command")
    }

    /// Runs the command in a new client.
    func perform(_ request: SimulatedRequest) async -> SimulatedEnd {
        do {
            let client = try await makeClient()
            let end: SimulatedEnd
            do {
                end = SimulatedEnd(try await request.run(on: client))
            } catch {
                end = SimulatedEnd(error)
            }
            if end == .completed { isTold.withLock { $0 = true } }
            try await client.close()
            return end
        } catch {
            return SimulatedEnd(error)
        }
    }

    /// Runs the command and keeps the moment before every change of the disk, and the last one. An
    /// upload changes little on its own disk, so the moments of its requests are kept too.
    func moments(
        of request: SimulatedRequest
    ) async -> (moments: [SimulatedMoment], end: SimulatedEnd) {
        disk.observe { [self] image, call in keep(moment(image, before: "\(call)")) }
        watchesLink.withLock { $0 = request.isUpload }
        let end = await perform(request)
        watchesLink.withLock { $0 = false }
        disk.observe(nil)
        keep(moment(disk.image, before: "nothing"))
        return (kept.withLock { $0 }, end)
    }

    private func keep(_ moment: SimulatedMoment) { kept.withLock { $0.append(moment) } }

    /// Reads the parts in this order: a reported success depends on the records, and these depend
    /// on the server's state. Meanwhile all calls to the disk wait, or the disk does not matter.
    private func moment(_ image: DiskImage, before next: String) -> SimulatedMoment {
        let isTold = isTold.withLock { $0 }
        let database = SimulatedDatabase(at: stateDirectory)
        return SimulatedMoment(
            next: next, image: image, database: database, server: server.state.withLock { $0 },
            stateDirectory: stateDirectory, isTold: isTold, limits: limits)
    }

    private func makeClient() async throws -> TransferClient {
        var configuration = ClientConfiguration(
            serverURL: FakeServer.base, stateDirectory: stateDirectory)
        configuration.chunkSize = Self.chunkSize
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        var environment = ClientEnvironment(
            files: disk, now: { Timestamp.current },
            sleep: { _ in
                try Task.checkCancellation()
                await Task.yield()
            },
            makeGenerator: { AnyGenerator(SystemRandomNumberGenerator()) })
        environment.checkpointLimits = limits
        let link = ObservedLink(server: server) { [self] next in
            guard watchesLink.withLock({ $0 }) else { return }
            keep(moment(disk.image, before: next))
        }
        return try await TransferClient(
            configuration: configuration, transport: link, environment: environment)
    }
}
