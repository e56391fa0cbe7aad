import Glibc
import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

/// R2, R114: whichever call of an operation fails, the service acknowledges nothing that is not
/// durable, loses nothing that it acknowledged and leaves no descriptor open. A retry completes.
///
/// The first call fails, then the second, and so on, until the operation runs untouched.
@Suite(.timeLimit(.minutes(5))) struct NthFailureTests {
    /// An operation of the engine, with its preparation.
    struct Operation: Sendable, CustomStringConvertible {
        let description: String
        /// Whether a client sends the same request again after a failure.
        var isRepeatable = false
        let prepare: @Sendable (PromisedClient) async throws -> Upload
        let run: @Sendable (PromisedClient, Upload) async throws -> Void

        static let all = [
            Operation(description: "a whole chunk") { client in
                try await client.begin(sampleBytes(1700))
            } run: { client, upload in
                try await client.put(1, of: upload)
            },
            Operation(description: "the rest of a chunk") { client in
                let upload = try await client.begin(sampleBytes(1700))
                try await client.put(1, of: upload)
                try await client.breakOff(0, of: upload, after: 300)
                return upload
            } run: { client, upload in
                try await client.put(0, of: upload, from: 300)
            },
            Operation(description: "a chunk that breaks off") { client in
                try await client.begin(sampleBytes(1700))
            } run: { client, upload in
                try await client.breakOff(0, of: upload, after: 600)
            },
            Operation(description: "an append") { client in
                let upload = try await client.begin(sampleBytes(1700))
                try await client.append(400, to: upload, at: 0)
                return upload
            } run: { client, upload in
                try await client.append(900, to: upload, at: 400)
            },
            Operation(description: "a finalize") { client in
                try await received(client)
            } run: { client, upload in
                try await client.finish(upload)
            },
            Operation(description: "a finalize of content that is there") { client in
                try await client.finish(try await received(client))
                return try await received(client)
            } run: { client, upload in
                try await client.finish(upload)
            },
            Operation(description: "a cancel", isRepeatable: true) { client in
                try await received(client)
            } run: { client, upload in
                try await client.cancel(upload)
            },
            Operation(description: "a sweep", isRepeatable: true) { client in
                let file = try await client.finish(try await received(client))
                try await client.node.machine.metadata.deleteFile(
                    file.id, owner: .tester, at: ManualClock().now())
                client.ledger.update { promises in
                    promises.files = [:]
                    promises.uploads = [:]
                    promises.deletedFiles = [file.id]
                }
                return try await received(client)
            } run: { client, upload in
                try await client.node.engine.sweep()
            },
        ]

        private static func received(_ client: PromisedClient) async throws -> Upload {
            let upload = try await client.begin(sampleBytes(1700))
            for index in [1, 0] { try await client.put(index, of: upload) }
            return upload
        }
    }

    /// How a call fails.
    struct Failure: Sendable, CustomStringConvertible {
        let number: Int32
        let isLasting: Bool

        var description: String {
            "\(String(cString: strerror(number)))\(isLasting ? ", from then on" : "")"
        }

        /// Whether an operation may report this failure with the error.
        func isTold(as error: any Error) -> Bool {
            guard let error = error as? EngineError else { return false }
            return number == ENOSPC ? error.code == .storageFull : error.code == .internalError
        }

        static let all = [EIO, ENOSPC].flatMap { number in
            [false, true].map { Failure(number: number, isLasting: $0) }
        }
    }

    private static let timeout = 200

    @Test(arguments: Operation.all, Failure.all)
    func `no failing call of the disk loses acknowledged bytes or leaks a descriptor`(
        operation: Operation, failure: Failure
    ) async throws {
        for position in 0..<Self.timeout {
            let (client, upload) = try await prepared(operation)
            let disk = client.node.machine.disk
            let fault = SimulatedDisk.Fault(
                after: position, with: failure.number, isLasting: failure.isLasting)
            disk.plan(fault)
            let isUndone = await run(operation, client, upload) { failure.isTold(as: $0) }
            let hasFailed = disk.hasFailed
            // Acknowledged successes and earlier promises must survive a power cut here.
            let found = await violations(of: client) {
                disk.plan(nil)
                if isUndone { try await operation.run(client, upload) }
            }
            #expect(found.isEmpty, "call \(position): \(found.first ?? "")")
            if !hasFailed { return }
        }
        Issue.record("it never ran without a failure")
    }

    /// The row cannot be written, or it is written and its answer is lost.
    @Test(arguments: Operation.all, [SimulatedMetadata.FailureMoment.before, .after])
    func `no failing transaction loses acknowledged bytes or leaks a descriptor`(
        operation: Operation, moment: SimulatedMetadata.FailureMoment
    ) async throws {
        for position in 0..<Self.timeout {
            let (client, upload) = try await prepared(operation)
            let metadata = client.node.machine.metadata
            metadata.fail(after: position, moment)
            let isUndone = await run(operation, client, upload) {
                ($0 as? EngineError)?.code.facts.isRetryable == true
            }
            let hasFailed = metadata.hasFailed
            let found = await violations(of: client) {
                metadata.heal()
                if isUndone { try await operation.run(client, upload) }
            }
            #expect(found.isEmpty, "transaction \(position): \(found.first ?? "")")
            if !hasFailed { return }
        }
        Issue.record("it never ran without a failure")
    }

    /// A start that meets a failure loses nothing; the next one recovers.
    @Test(arguments: Failure.all)
    func `a recovery that fails at any call of the disk loses nothing`(failure: Failure)
        async throws
    {
        let machine = try await interruptedMachine()
        for position in 0..<Self.timeout {
            let machine = (client: machine.client, machine: machine.machine.copy())
            let disk = machine.machine.disk
            disk.plan(
                .init(after: position, with: failure.number, isLasting: failure.isLasting))
            // The start may fail or get around the failure. The test checks what is there
            // afterwards.
            let node = try? await machine.machine.start()
            let hasFailed = disk.hasFailed
            try? await node?.close()
            #expect(disk.openFileCount == 0, "call \(position)")
            disk.plan(nil)
            let restarted = try await machine.machine.start()
            let found = await machine.client.ledger.value.violations(on: restarted)
            #expect(found.isEmpty, "call \(position): \(found.first ?? "")")
            if !hasFailed { return }
        }
        Issue.record("it never ran without a failure")
    }

    /// A machine that stopped in the middle of a finalize, beside an open session with a partial.
    private func interruptedMachine() async throws -> (
        client: PromisedClient, machine: SimulatedMachine
    ) {
        let machine = SimulatedMachine()
        let client = PromisedClient(try await machine.start())
        let open = try await client.begin(sampleBytes(1500, seed: 2))
        try await client.put(1, of: open)
        try await client.breakOff(0, of: open, after: 600)
        let upload = try await client.begin(sampleBytes(1700))
        for index in [1, 0] { try await client.put(index, of: upload) }
        _ = try await machine.metadata.beginFinalize(
            of: upload.id, digest: upload.digest, fileID: .random())
        return (client, machine.surviving(.losesAll))
    }

    private func prepared(_ operation: Operation) async throws -> (PromisedClient, Upload) {
        let client = PromisedClient(try await SimulatedMachine().start())
        return (client, try await operation.prepare(client))
    }

    /// Runs the operation. An error must be one that `isExpected` accepts.
    ///
    /// - Returns: Whether its client would repeat the operation.
    private func run(
        _ operation: Operation, _ client: PromisedClient, _ upload: Upload,
        _ isExpected: (any Error) -> Bool
    ) async -> Bool {
        do {
            try await operation.run(client, upload)
            return false
        } catch {
            #expect(isExpected(error), "told as \(String(reflecting: error))")
            // A client that sends bytes asks for the offset first. The check of the promises does
            // that.
            return operation.isRepeatable
        }
    }

    /// Broken promises after a cut at this moment, and in the process that goes on once the failure
    /// is over.
    private func violations(
        of client: PromisedClient, healing heal: () async throws -> Void
    ) async -> [String] {
        let promises = client.ledger.value
        var found: [String] = []
        let cut = client.node.machine.surviving(.losesAll)
        do {
            try await heal()
            found += await promises.violations(on: try await cut.start())
                .map { "after a cut: \($0)" }
            found += await promises.violations(on: client.node)
            // Bytes of a failed sync stay lost, whatever later syncs report, unless they were
            // written again before they counted.
            let laterCut = client.node.machine.surviving(.losesAll)
            found += await promises.violations(on: try await laterCut.start())
                .map { "after a later cut: \($0)" }
            try await client.node.engine.sweep()
            try await client.node.close()
        } catch {
            found.append(String(reflecting: error))
        }
        let disk = client.node.machine.disk
        // A thread may still hold the last file that it read.
        for _ in 0..<2000 where disk.openFileCount > 0 {
            try? await Task.sleep(for: .milliseconds(1))
        }
        if disk.openFileCount > 0 { found.append("\(disk.openFileCount) descriptors are open") }
        found += disk.image.paths.filter { $0.hasPrefix("/data/staging/") }.map { "left: \($0)" }
        return found
    }
}
