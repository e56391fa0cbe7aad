import Foundation
import HTTPTypes
import KedgeFiles
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Logging

@testable import KedgeClient

/// A directory, a server and a network for one test; the directory goes with it.
final class Scene: Sendable {
    let directory: String
    let server = FakeServer()
    let files = TestFileSystem()
    /// Waits that the retry policy asked for; nobody really waits.
    let delays = Mutex<[Duration]>([])
    private let seed: UInt64

    init(seed: UInt64 = 1) throws {
        self.seed = seed
        directory = NSTemporaryDirectory() + "kedge-client-" + TransferID.random().text
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
    }

    deinit {
        // A directory left behind in the temporary folder hurts nobody.
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

    /// A client on the scene's records; a second one stands for a second process.
    func client(
        limits: PartialLimits = PartialLimits(),
        _ change: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        var configuration = ClientConfiguration(
            serverURL: FakeServer.base, token: "secret", stateDirectory: directory + "/state")
        configuration.chunkSize = 64 << 10
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        change(&configuration)
        var environment = environment
        environment.partialLimits = limits
        return try await TransferClient(
            configuration: configuration, transport: server, environment: environment)
    }

    func path(_ name: String) -> String { directory + "/" + name }

    /// Bytes without a pattern that a wrong offset could hide in.
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

    /// A finished file on the server.
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

/// Fails the test's wait instead of hanging.
func eventually(
    within limit: Duration = .seconds(10), _ condition: () async throws -> Bool
) async throws -> Bool {
    let deadline = ContinuousClock.now + limit
    while ContinuousClock.now < deadline {
        if try await condition() { return true }
        try await Task.sleep(for: .milliseconds(10))
    }
    return false
}
