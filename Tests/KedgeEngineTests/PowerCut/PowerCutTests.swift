import KedgeEngine
import KedgeModel
import KedgeTesting
import Testing

/// R2, R113–R115: the power fails before any call that changes the disk. Whatever the disk kept of
/// the unsynced bytes, everything that was acknowledged is there.
@Suite(.timeLimit(.minutes(5))) struct PowerCutTests {
    /// The state of the machine at one moment, with the promises made by then.
    private struct Moment: Sendable {
        let call: String
        let image: DiskImage
        let metadata: SimulatedMetadata
        let promises: Promises

        func surviving(_ cut: Cut) -> SimulatedMachine {
            SimulatedMachine(
                disk: SimulatedDisk(image.surviving(cut)), metadata: metadata.survivor)
        }
    }

    private static let cuts: [Cut] =
        [.losesAll, .keepsAll] + (0..<4).map { .random(seed: $0) }

    /// Runs the work and keeps the moment before every change of the disk, and the last one.
    private func moments(
        on machine: SimulatedMachine = SimulatedMachine(),
        _ work: (PromisedClient) async throws -> Void
    ) async throws -> [Moment] {
        let client = PromisedClient(try await machine.start())
        let moments = Shared<[Moment]>([])
        // All calls to the disk wait meanwhile, so the image has the bytes of every row.
        let keep: SimulatedDisk.Observer = { image, call in
            // Reads the promises before the rows, so that every promise has its row.
            let promises = client.ledger.value
            let moment = Moment(
                call: "\(call)", image: image, metadata: machine.metadata.survivor,
                promises: promises)
            moments.update { $0.append(moment) }
        }
        machine.disk.observe(keep)
        try await work(client)
        machine.disk.observe(nil)
        keep(machine.disk.image, .close)
        return moments.value
    }

    /// Cuts at every moment, recovers, and lets the clients finish; then cuts again.
    private func violations(_ moments: [Moment], cuts: [Cut] = cuts) async throws -> [String] {
        var found: [String] = []
        for (number, moment) in moments.enumerated() {
            for cut in cuts {
                let machine = moment.surviving(cut)
                let fixture = "cut \(number) before \(moment.call), \(cut)"
                do {
                    let node = try await machine.start()
                    var violations = await moment.promises.violations(on: node)
                    violations += await violationsAtRest(moment.promises, of: machine)
                    found += violations.map { "\(fixture): \($0)" }
                } catch {
                    found.append("\(fixture): no start: \(String(reflecting: error))")
                }
            }
        }
        return found
    }

    /// Promises broken by a second cut: files finished after the first cut must survive it.
    private func violationsAtRest(
        _ promises: Promises, of machine: SimulatedMachine
    ) async -> [String] {
        let later = machine.surviving(.losesAll)
        var found = later.disk.image.paths.filter { $0.hasPrefix("/data/quarantine/") }
            .map { "put aside: \($0)" }
        do {
            found += await promises.violations(on: try await later.start())
        } catch {
            found.append("no second start: \(String(reflecting: error))")
        }
        return found.map { "after a second cut: \($0)" }
    }

    private func expectNone(
        _ violations: [String], at location: SourceLocation = #_sourceLocation
    ) {
        let some = violations.prefix(5).joined(separator: "\n")
        #expect(
            violations.isEmpty, "\(violations.count) violations:\n\(some)", sourceLocation: location
        )
    }

    @Test func `chunks in any order, one of them in parts, and their finalize survive power cuts`()
        async throws
    {
        expectNone(try await violations(try await moments(Self.uploadInChunks)))
    }

    @Test func `appends without a size at first survive power cuts`() async throws {
        let moments = try await moments { client in
            let upload = try await client.begin(sampleBytes(2300), sized: false)
            try await client.append(700, to: upload, at: 0)
            try await client.append(900, to: upload, at: 700)
            try await client.append(700, to: upload, at: 1600, completes: true)
            try await client.finish(upload)
        }
        expectNone(try await violations(moments))
    }

    @Test func `files of one content that are deleted one after the other survive power cuts`()
        async throws
    {
        let moments = try await moments { client in
            var files: [FileRecord] = []
            for _ in 0..<2 {
                let upload = try await client.begin(sampleBytes(1200))
                for index in 0..<2 { try await client.put(index, of: upload) }
                files.append(try await client.finish(upload))
            }
            for file in files {
                try await client.delete(file)
                try await client.node.engine.sweep()
            }
            // The content is uploaded a third time, after its bytes were removed.
            let upload = try await client.begin(sampleBytes(1200))
            for index in 0..<2 { try await client.put(index, of: upload) }
            try await client.finish(upload)
        }
        expectNone(try await violations(moments))
    }

    @Test func `a cancel and another upload survive power cuts`() async throws {
        let moments = try await moments { client in
            let upload = try await client.begin(sampleBytes(1200))
            try await client.put(1, of: upload)
            let other = try await client.begin(sampleBytes(1700, seed: 2))
            try await client.put(0, of: other)
            try await client.cancel(upload)
            try await client.node.engine.sweep()
            try await client.put(1, of: other)
            try await client.finish(other)
        }
        expectNone(try await violations(moments))
    }

    @Test func `concurrent uploads, two of them of one content, survive power cuts`() async throws {
        let moments = try await moments { client in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for seed: UInt64 in [1, 1, 2] {
                    group.addTask {
                        let upload = try await client.begin(sampleBytes(1500, seed: seed))
                        async let second: Void = client.put(1, of: upload)
                        try await client.put(0, of: upload)
                        try await second
                        try await client.finish(upload)
                    }
                }
                try await group.waitForAll()
            }
        }
        expectNone(try await violations(moments))
    }

    private static let uploadInChunks: @Sendable (PromisedClient) async throws -> Void = { client in
        let upload = try await client.begin(sampleBytes(3500))
        try await client.put(2, of: upload)
        try await client.put(0, of: upload)
        try await client.breakOff(1, of: upload, after: 600)
        try await client.breakOff(1, of: upload, from: 600, after: 200)
        try await client.put(1, of: upload, from: 800)
        try await client.put(3, of: upload)
        try await client.finish(upload)
    }

    /// A check that cannot fail proves nothing: without either kind of sync it must fail.
    @Test(arguments: SimulatedDisk.Mutation.allCases)
    func `a disk that does not sync is caught`(mutation: SimulatedDisk.Mutation) async throws {
        let machine = SimulatedMachine(disk: SimulatedDisk(mutation: mutation))
        let found = try await violations(
            try await moments(on: machine, Self.uploadInChunks), cuts: [.losesAll])
        #expect(!found.isEmpty)
    }

    @Test func `rows that are durable later than their commit reports are caught`() async throws {
        let metadata = SimulatedMetadata(durability: .late(transactions: 1))
        let machine = SimulatedMachine(metadata: metadata)
        let found = try await violations(
            try await moments(on: machine, Self.uploadInChunks), cuts: [.keepsAll])
        #expect(!found.isEmpty)
    }
}
