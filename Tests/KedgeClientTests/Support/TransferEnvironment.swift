import Foundation
import HTTPTypes
import KedgeClient
import KedgeFiles
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Logging

/// A directory, a server and a network for one test; the directory is removed with the
/// environment.
final class TransferEnvironment: Sendable {
    let directory: String
    let server = FakeServer()
    let files = TestFileSystem()
    /// Waits that the retry policy requested; the test does not really wait.
    let delays = Mutex<[Duration]>([])
    private let seed: UInt64

    init(seed: UInt64 = 1) throws {
        self.seed = seed
        directory = NSTemporaryDirectory() + "kedge-client-" + TransferID.random().text
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
    }

    deinit {
        // A directory left behind in the temporary folder is harmless.
        try? FileManager.default.removeItem(atPath: directory)
    }

    var environment: ClientEnvironment {
        ClientEnvironment(
            files: files, now: { Timestamp.current },
            sleep: { [self] delay in
                delays.withLock { $0.append(delay) }
                try Task.checkCancellation()
                await Task.yield()
            },
            makeGenerator: { AnyGenerator(SystemRandomNumberGenerator()) })
    }

    /// Makes a client on the environment's records; a second one stands for a second process.
    func client(
        limits: CheckpointLimits = CheckpointLimits(),
        _ change: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        var configuration = ClientConfiguration(
            serverURL: FakeServer.base, token: "secret", stateDirectory: directory + "/state")
        configuration.chunkSize = 64 << 10
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        change(&configuration)
        var environment = environment
        environment.checkpointLimits = limits
        return try await TransferClient(
            configuration: configuration, transport: server, environment: environment)
    }

    func path(_ name: String) -> String { directory + "/" + name }

    /// Returns bytes without a pattern that could hide a wrong offset.
    static func bytes(_ count: Int, seed: UInt64 = 7) -> [UInt8] {
        var generator = SplitMix64(seed: seed)
        var words = [UInt64](repeating: 0, count: count / 8 + 1)
        for index in words.indices { words[index] = generator.next() }
        return words.withUnsafeBytes { Array($0.prefix(count)) }
    }

    @discardableResult
    func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        try Data(bytes).write(to: URL(fileURLWithPath: path(name)))
        return path(name)
    }

    func read(_ name: String) -> [UInt8]? {
        FileManager.default.contents(atPath: path(name)).map(Array.init)
    }

    func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    }

    func plan(
        _ fault: Fault, count: Int = 1,
        when matches: @escaping @Sendable (FakeServer.Seen) -> Bool = { _ in true }
    ) {
        server.state.withLock {
            $0.faults.append(
                PlannedFault(matches: matches, fault: fault, remainingCount: count))
        }
    }

    /// Adds a finished file to the server.
    func addFile(_ bytes: [UInt8], chunkSize: Int64 = 64 << 10, name: String = "file") -> FileID {
        let id = FileID.random()
        server.state.withLock {
            $0.files[id] = FakeServer.StoredFile(
                bytes: bytes, name: name, etag: "\"\(SHA256Hasher.digest(of: bytes).hex)\"",
                chunkSize: chunkSize)
        }
        return id
    }

    func seen(_ method: String, _ part: String) -> [FakeServer.Seen] {
        server.state.withLock { $0.seen.filter { $0.method == method && $0.path.contains(part) } }
    }

    var repeatedByteCount: Int { server.state.withLock { $0.repeatedByteCount } }
    var sessions: [FakeServer.Session] { server.state.withLock { Array($0.sessions.values) } }
    func storedBytes(_ id: FileID?) -> [UInt8]? {
        id.flatMap { id in server.state.withLock { $0.files[id]?.bytes } }
    }
}
