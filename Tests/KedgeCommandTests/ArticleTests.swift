import Foundation
import KedgeClient
import KedgeModel
import KedgeTesting
import Testing

/// The code of README.md and of the articles of KedgeClient, run against a real service.
///
/// `Tests/docs/check_articles.py` compares the regions between `// article` and `// end` with the
/// pages: change both.
///
/// Serialized, because each test runs processes that hash and sync: several at a time would only
/// measure the machine.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct ArticleTests {
    private let fixture: CommandEnvironment

    init() throws { fixture = try CommandEnvironment() }

    /// The records of this test, which `kedge` uses, too.
    private var records: String { fixture.path("state/kedge") }

    // MARK: README.md

    // article
    /// Resumes when it is called again after a kill. The server is ClientConfiguration(serverURL:).
    func send(_ path: String, to server: ClientConfiguration) async throws -> TransferSnapshot {
        let client = try await TransferClient(configuration: server)
        let id = try await client.enqueueUpload(path: path)
        return try await client.run(id)  // state, remoteFileID, sha256; or errorCode and message
    }
    // end

    @Test func `the function of the README sends a file`() async throws {
        let source = try fixture.sample(mebibytes: 3, plus: 5)
        let server = try await fixture.serve()
        let configuration = ClientConfiguration(serverURL: server.url, stateDirectory: records)
        let result = try await send(source.path, to: configuration)
        #expect(result.state == .completed, "\(result.message)")
        #expect(result.sha256 == source.digest)
        try await fixture.expectServed(source, id: result.remoteFileID?.text, at: server.url)
    }

    // MARK: FirstUpload.md

    // article
    func makeClient(server: String, folder: String) async throws -> TransferClient {
        let configuration = ClientConfiguration(serverURL: server, stateDirectory: folder)
        return try await TransferClient(configuration: configuration)
    }
    // end

    // article
    struct TransferStopped: Error {
        let message: String
    }

    func upload(_ path: String, with client: TransferClient) async throws -> FileID {
        let id = try await client.enqueueUpload(path: path)
        let result = try await client.run(id)
        guard result.state == .completed, let file = result.remoteFileID else {
            throw TransferStopped(message: result.message)
        }
        return file
    }
    // end

    // article
    func download(_ file: FileID, to path: String, with client: TransferClient) async throws {
        let id = try await client.enqueueDownload(.file(file), to: path)
        let result = try await client.run(id)
        guard result.state == .completed else {
            throw TransferStopped(message: result.message)
        }
    }
    // end

    @Test func `a first upload comes back as it was`() async throws {
        let source = try fixture.sample(mebibytes: 9, plus: 1)
        let server = try await fixture.serve()
        let client = try await makeClient(server: server.url, folder: records)
        let file = try await upload(source.path, with: client)
        try await download(file, to: fixture.path("copy.bin"), with: client)
        #expect(try SampleFile.digest(of: fixture.path("copy.bin")) == source.digest)
        try await client.close()
    }

    @Test func `a download of a file that is not there stops`() async throws {
        let server = try await fixture.serve()
        let client = try await makeClient(server: server.url, folder: records)
        await #expect(throws: TransferStopped.self) {
            try await download(.random(), to: fixture.path("copy.bin"), with: client)
        }
        try await client.close()
    }

    // MARK: BackgroundAndResume.md

    // article
    func resumeEverything(with client: TransferClient) async throws -> [TransferSnapshot] {
        let results = try await client.runQueued()
        return results.filter { $0.state != .completed }
    }
    // end

    // article
    func record(_ paths: [String], with client: TransferClient) async throws {
        for path in paths {
            _ = try await client.enqueueUpload(path: path)
        }
    }
    // end

    // article
    func makeWorker(server: String, folder: String) async throws -> TransferClient {
        var configuration = ClientConfiguration(serverURL: server, stateDirectory: folder)
        configuration.maxConcurrentTransfers = 3
        // Without the service for ten minutes, a run ends, and its transfer stays queued.
        configuration.serverTimeout = .seconds(600)
        return try await TransferClient(configuration: configuration)
    }

    func work(with client: TransferClient) async throws {
        while !Task.isCancelled {
            for result in try await client.runQueued() where result.state == .failed {
                print(result.name, result.message)
            }
            try await Task.sleep(for: .seconds(1))
        }
    }
    // end

    // article
    func stop(_ work: Task<Void, any Error>, of client: TransferClient) async throws {
        work.cancel()
        // Its end by cancellation is no failure.
        _ = await work.result
        try await client.close()
    }
    // end

    // article
    func pauseAll(with client: TransferClient) async throws {
        for transfer in try await client.transfers() where !transfer.state.isFinal {
            do {
                try await client.pause(transfer.id)
            } catch let error as TransferError where error.code == .illegalTransition {
                // It has ended since it was listed.
                continue
            }
        }
    }
    // end

    /// Starts `kedge upload` in its own process, and returns when bytes move over a slow link.
    private func startUpload(
        of source: SampleFile, over proxy: FaultyProxy
    ) async throws -> ChildProcess {
        let process = try fixture.start([
            "upload", source.path, "--server", proxy.url, "--chunk-size", "1048576",
        ])
        try await eventually("bytes move") { proxy.counts.upByteCount > 3 << 20 }
        return process
    }

    @Test func `a transfer resumes in another process after a kill`() async throws {
        let source = try fixture.sample(mebibytes: 16)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let process = try await startUpload(of: source, over: proxy)
        process.signal(SIGKILL)
        #expect(try await process.wait() == .signaled(SIGKILL))
        proxy.faults = Faults()
        let client = try await makeClient(server: proxy.url, folder: records)
        #expect(try await resumeEverything(with: client).isEmpty)
        try [server].expectTakenOnce(source)
        #expect(server.requests.sessionIDs.count == 1)
        try await client.close()
    }

    @Test func `one client records uploads, and another one runs them`() async throws {
        let sources = try (1...3).map {
            try fixture.sample("\($0).bin", mebibytes: $0, seed: UInt64($0))
        }
        let server = try await fixture.serve()
        let recorder = try await makeClient(server: server.url, folder: records)
        let worker = try await makeWorker(server: server.url, folder: records)
        let running = Task { try await self.work(with: worker) }
        try await record(sources.map(\.path), with: recorder)
        // Not only at the service: a worker that stops before the answer leaves a paused record.
        while try await recorder.transfers().contains(where: { $0.state != .completed }) {
            try await Task.sleep(for: .milliseconds(50))
        }
        try await stop(running, of: worker)
        let digests = try server.files().map(\.sha256)
        #expect(Set(digests) == Set(sources.map(\.digest)))
        let states = try await recorder.transfers().map(\.state)
        #expect(states == [.completed, .completed, .completed])
        try await recorder.close()
    }

    @Test func `another process pauses an upload, which then waits for its user`() async throws {
        let source = try fixture.sample(mebibytes: 16)
        let server = try await fixture.serve()
        let proxy = try fixture.proxy(to: server.port, Faults(bytesPerSecond: 4 << 20))
        let process = try await startUpload(of: source, over: proxy)
        let client = try await makeClient(server: proxy.url, folder: records)
        try await pauseAll(with: client)
        _ = try await process.wait()
        let paused = try #require(try await client.transfers().first)
        #expect(paused.state == .paused)
        #expect(paused.pauseReason == .user)
        #expect(try await resumeEverything(with: client).isEmpty)
        #expect(try await client.transfer(paused.id).state == .paused)
        proxy.faults = Faults()
        try await client.resume(paused.id)
        #expect(try await client.run(paused.id).state == .completed)
        try [server].expectTakenOnce(source)
        try await client.close()
    }

    // MARK: Observing.md

    // article
    func follow(
        _ id: TransferID, with client: TransferClient, show: (String) -> Void
    ) async throws {
        for try await snapshot in client.snapshots(of: id) {
            var line = snapshot.name
            if let total = snapshot.totalBytes, total > 0 {
                line += " \(100 * snapshot.bytesTransferred / total) %"
            }
            show("\(line) \(snapshot.message)")
        }
    }
    // end

    // article
    func advice(for snapshot: TransferSnapshot) -> String {
        switch (snapshot.state, snapshot.errorCode) {
        case (.completed, _): "Done."
        case (.queued, .some): "The service is away. The next run continues."
        case (.failed, .diskFull), (.failed, .storageFull): "Free some space, then try again."
        case (.failed, .fileTooLarge): "The service takes no file of this size."
        default: snapshot.message
        }
    }
    // end

    // article
    func tryAgain(
        _ failed: TransferSnapshot, with client: TransferClient
    ) async throws -> TransferSnapshot {
        try await client.retry(failed.id, fromScratch: failed.offersRetryFromScratch)
        return try await client.run(failed.id)
    }
    // end

    // article
    func enqueueIfThere(_ path: String, with client: TransferClient) async throws -> TransferID? {
        do {
            return try await client.enqueueUpload(path: path)
        } catch let error as TransferError where error.code == .fileMissing {
            return nil
        }
    }
    // end

    @Test func `progress reaches all of the file`() async throws {
        let source = try fixture.sample(mebibytes: 8)
        let server = try await fixture.serve()
        let client = try await makeClient(server: server.url, folder: records)
        let id = try #require(try await enqueueIfThere(source.path, with: client))
        async let result = client.run(id)
        var lines: [String] = []
        try await follow(id, with: client) { lines.append($0) }
        #expect(lines.last?.hasPrefix("source.bin 100 %") == true, "\(lines)")
        let completed = try await result
        #expect(advice(for: completed) == "Done.")
        #expect(try await enqueueIfThere(fixture.path("missing"), with: client) == nil)
        try await client.close()
    }

    @Test func `a refused upload completes when the service takes it`() async throws {
        let source = try fixture.sample(mebibytes: 2)
        let strict = try await fixture.serve(["--limits-max-file-size", "1048576"])
        let client = try await makeClient(server: strict.url, folder: records)
        let failed = try await client.run(try await client.enqueueUpload(path: source.path))
        #expect(failed.state == .failed)
        #expect(failed.errorCode == .fileTooLarge)
        #expect(advice(for: failed) == "The service takes no file of this size.")
        strict.process.signal(SIGTERM)
        _ = try await strict.process.wait()
        let server = try await fixture.serve(port: strict.port)
        #expect(try await tryAgain(failed, with: client).state == .completed)
        #expect(try server.files().map(\.sha256) == [source.digest])
        try await client.close()
    }

    @Test func `an upload to a service that is away stays queued`() async throws {
        let source = try fixture.sample(mebibytes: 1)
        let server = try await fixture.serve()
        server.process.signal(SIGTERM)
        _ = try await server.process.wait()
        var configuration = ClientConfiguration(serverURL: server.url, stateDirectory: records)
        configuration.serverTimeout = .milliseconds(100)
        let waiting = try await send(source.path, to: configuration)
        #expect(waiting.state == .queued)
        #expect(waiting.errorCode == .offline)
        #expect(advice(for: waiting) == "The service is away. The next run continues.")
    }
}
