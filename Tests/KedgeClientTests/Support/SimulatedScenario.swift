import KedgeClient
import KedgeFiles
import KedgeHash
import KedgeModel
import KedgeTesting

/// A command, the state of the machine before it, and its end when nothing goes wrong.
struct SimulatedScenario: Sendable, CustomStringConvertible {
    let description: String
    let request: SimulatedRequest
    /// The bytes at the destination before the command.
    var before: [UInt8]?
    var end = SimulatedEnd.completed
    /// The end of the same command when it is repeated.
    var endAgain = SimulatedEnd.completed
    /// Finds the moment at which an earlier run of the same command was killed; nil without such a
    /// run.
    var isKill: (@Sendable (SimulatedMoment) async throws -> Bool)?
    /// True when unfinished chunks are recorded several times while they arrive.
    var isInParts = false

    /// Two complete chunks and a short one.
    static let content = TransferEnvironment.bytes(2500)
    static let oldContent = TransferEnvironment.bytes(1300, seed: 3)

    private static let fileID = FileID.random()

    static let fresh = SimulatedScenario(
        description: "a download", request: .download(.file(fileID), overwrites: false))
    static let replacing = SimulatedScenario(
        description: "a download over an old file",
        request: .download(.file(fileID), overwrites: true), before: oldContent)
    static let forbidden = SimulatedScenario(
        description: "a download that may not replace an old file",
        request: .download(.file(fileID), overwrites: false), before: oldContent,
        end: .refused(.destinationExists), endAgain: .refused(.destinationExists))
    static let resumed = SimulatedScenario(
        description: "a download that goes on", request: .download(.file(fileID), overwrites: true),
        before: oldContent, isKill: { try await hasSomeChunks($0) })
    static let forgotten = SimulatedScenario(
        description: "a download whose record does not know its temporary file yet",
        request: .download(.file(fileID), overwrites: false), isKill: { $0.next == "truncate" })
    /// Without a hash the client cannot verify that the file at the destination is the right one.
    static let sequential = SimulatedScenario(
        description: "a download in one go",
        request: .download(.url(FakeServer.base + "/plain/x"), overwrites: false),
        endAgain: .refused(.destinationExists))
    /// Without a hash of the file a mixture of old and new bytes would go unnoticed.
    static let inParts = SimulatedScenario(
        description: "a download whose chunks are recorded while they come",
        request: .download(.url(FakeServer.base + "/plain/x"), overwrites: true),
        isInParts: true)
    static let resumedInParts = SimulatedScenario(
        description: "a download that goes on inside of chunks", request: inParts.request,
        isKill: { try await hasUnsyncedParts($0) }, isInParts: true)
    static let upload = SimulatedScenario(description: "an upload", request: .upload)

    /// The bytes at the destination after the command.
    var after: [UInt8]? {
        if request.isUpload { return nil }
        return end == .completed ? Self.content : before
    }

    /// Returns the machine at the start of the command.
    func start() async throws -> SimulatedMoment {
        let machine = try await machine()
        guard let isKill else { return machine }
        for moment in try await SimulatedHost(machine).moments(of: request).moments
        where !moment.isTold {
            if try await isKill(moment) { return moment }
        }
        throw NoSuchMoment()
    }

    struct NoSuchMoment: Error {}

    /// Returns a machine on which everything is durable.
    private func machine() async throws -> SimulatedMoment {
        let disk = SimulatedDisk()
        try disk.makeDirectory(SimulatedHost.folder)
        try Self.put(Self.content, at: SimulatedHost.source, on: disk)
        if let before { try Self.put(before, at: SimulatedHost.destination, on: disk) }
        for directory in ["/", SimulatedHost.folder] { try disk.syncDirectory(directory) }
        var moment = SimulatedMoment(image: disk.image)
        moment.server = server
        if isInParts {
            moment.limits.noteByteCount = 400
            moment.limits.syncByteCount = 800
        }
        return try await SimulatedHost(moment).prepared()
    }

    private var server: FakeServer.State {
        var server = FakeServer.State()
        guard case .download(let reference, _) = request else { return server }
        switch reference {
        case .file(let id):
            let digest = SHA256Hasher.digest(of: Self.content)
            server.files[id] = FakeServer.StoredFile(
                bytes: Self.content, etag: "\"\(digest.hex)\"", chunkSize: SimulatedHost.chunkSize)
        case .url:
            server.plain["x"] = FakeServer.Plain(
                bytes: Self.content, etag: isInParts ? "\"v1\"" : nil, servesRanges: isInParts)
            server.pieceByteCount = 100
        }
        return server
    }

    private static func put(_ bytes: [UInt8], at path: String, on disk: SimulatedDisk) throws {
        let file = try disk.open(path, .createNew)
        try bytes.withUnsafeBytes { try file.write($0, at: 0) }
        try file.syncData()
        try file.close()
    }

    private static func hasUnsyncedParts(_ moment: SimulatedMoment) async throws -> Bool {
        let partials = try await moment.database.content().partials
        return partials.values.joined().contains { $0.noted != $0.synced }
    }

    private static func hasSomeChunks(_ moment: SimulatedMoment) async throws -> Bool {
        try await moment.database.records().contains { record in
            guard case .download(let download) = record, let layout = download.layout else {
                return false
            }
            return (1..<(layout.chunkCount ?? 0)).contains(download.downloadedChunks.count)
        }
    }
}
