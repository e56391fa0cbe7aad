import Foundation
import HTTPTypes
import KedgeClient
import KedgeFiles
import KedgeHash
import KedgeLocks
import KedgeModel
import KedgeTesting
import Logging
import Testing

/// A directory and a third-party upload server for one test.
struct SequentialUploadEnvironment {
    let base: TransferEnvironment
    let server: FakeUploadServer
    let uploadProtocol: UploadProtocol

    init(_ uploadProtocol: UploadProtocol) throws {
        self.uploadProtocol = uploadProtocol
        base = try TransferEnvironment()
        server = FakeUploadServer(uploadProtocol)
    }

    func client(
        _ change: (inout ClientConfiguration) -> Void = { _ in }
    ) async throws -> TransferClient {
        var configuration = ClientConfiguration(
            serverURL: FakeUploadServer.creationURL, token: "secret",
            stateDirectory: base.directory + "/state")
        configuration.chunkSize = 64 << 10
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        change(&configuration)
        return try await TransferClient(
            configuration: configuration, transport: server, environment: base.environment)
    }

    func set(_ change: (inout FakeUploadServer.State) -> Void) {
        server.state.withLock { change(&$0) }
    }

    func plan(
        _ fault: Fault, count: Int = 1,
        when matches: @escaping @Sendable (FakeServer.Seen) -> Bool = { _ in true }
    ) {
        set {
            $0.faults.append(PlannedFault(matches: matches, fault: fault, remainingCount: count))
        }
    }

    func enqueue(_ client: TransferClient) async throws -> TransferID {
        try await client.enqueueUpload(
            path: base.path("source.bin"), options: UploadOptions(uploadProtocol: uploadProtocol))
    }

    /// Begins an upload of the source file and stops the client while it waits for an answer.
    func stopUpload(
        at method: String
    ) async throws -> (id: TransferID, snapshot: TransferSnapshot) {
        let gate = Gate()
        plan(.wait(gate)) { $0.method == method }
        let client = try await client()
        let id = try await enqueue(client)
        let run = Task { try await client.run(id) }
        await gate.waitForArrival()
        run.cancel()
        let snapshot = try await run.value
        gate.open()
        return (id, snapshot)
    }

    func upload(_ bytes: [UInt8]) async throws -> TransferSnapshot {
        try base.write("source.bin", bytes)
        let client = try await client()
        return try await client.run(try await enqueue(client))
    }

    func seen(_ method: String) -> [FakeServer.Seen] {
        server.state.withLock { $0.seen.filter { $0.method == method } }
    }

    var uploads: [String: FakeUploadServer.Upload] { server.state.withLock { $0.uploads } }

    /// Expects a completed upload whose bytes the server has at the transfer's address.
    func expectUploaded(
        _ snapshot: TransferSnapshot, _ bytes: [UInt8],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(
            snapshot.state == .completed, "\(snapshot.message)", sourceLocation: sourceLocation)
        let number = snapshot.uploadURL?.split(separator: "/").last.map(String.init)
        let upload = number.flatMap { uploads[$0] }
        // Compared apart, so that a failure does not print millions of numbers.
        let isStored = upload?.bytes == bytes
        #expect(isStored, sourceLocation: sourceLocation)
        #expect(upload?.isComplete == true, sourceLocation: sourceLocation)
        #expect(
            snapshot.sha256 == SHA256Hasher.digest(of: bytes), sourceLocation: sourceLocation)
        #expect(snapshot.bytesTransferred == Int64(bytes.count), sourceLocation: sourceLocation)
        #expect(snapshot.errorCode == nil, sourceLocation: sourceLocation)
        #expect(
            server.state.withLock { $0.repeatedByteCount } == 0, sourceLocation: sourceLocation)
    }

    static let protocols: [UploadProtocol] = [.tus, .resumableUpload]
}
