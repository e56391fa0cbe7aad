import KedgeClient
import KedgeModel
import KedgeTesting
import Testing

/// R1, R46, R92, R96: the power is cut before any call that changes the disk. Whatever unsynced
/// bytes the disk keeps, no unfinished file is visible, the records promise no lost bytes, and the
/// same command completes.
@Suite(.timeLimit(.minutes(5)))
struct PowerCutTests {
    private static let cuts: [Cut] =
        [.losesAll, .keepsAll] + (0..<4).map { .random(seed: $0) }

    private static let scenarios: [SimulatedScenario] = [
        .fresh, .replacing, .forbidden, .resumed, .forgotten, .sequential, .resumedInParts,
        .upload,
    ]

    @Test(arguments: scenarios)
    func `a power cut takes nothing that the client promised`(scenario: SimulatedScenario)
        async throws
    {
        let found = try await violations(of: scenario)
        let some = found.prefix(5).joined(separator: "\n")
        #expect(found.isEmpty, "\(found.count) violations:\n\(some)")
    }

    /// A check that cannot fail proves nothing, so it must fail when any one of the syncs is
    /// ignored.
    @Test(
        arguments: [SimulatedScenario.fresh, .sequential, .inParts],
        SimulatedDisk.Mutation.allCases)
    func `a disk that ignores syncs is caught`(
        scenario: SimulatedScenario, mutation: SimulatedDisk.Mutation
    ) async throws {
        let found = try await violations(of: scenario, mutation: mutation, cuts: [.losesAll])
        #expect(!found.isEmpty)
    }

    /// Runs the command, cuts the power at each of its moments, and runs the command again
    /// afterwards.
    private func violations(
        of scenario: SimulatedScenario, mutation: SimulatedDisk.Mutation? = nil,
        cuts: [Cut] = cuts
    ) async throws -> [String] {
        let host = try SimulatedHost(try await scenario.start(), mutation: mutation)
        let (moments, end) = await host.moments(of: scenario.request)
        var found = end == scenario.end ? [] : ["without a cut it ended as \(end)"]
        for (number, moment) in moments.enumerated() {
            let (records, partials) = try await moment.database.content()
            for cut in cuts {
                let survivor = moment.surviving(cut)
                let wrong =
                    violations(of: scenario, records, on: survivor)
                    + violations(of: scenario, records, partials, on: survivor)
                    + (try await violationsAfterRestart(of: scenario, records, on: survivor))
                found += wrong.map { "cut \(number) before \(moment.next), \(cut): \($0)" }
            }
        }
        return found
    }

    /// Returns the violations after the cut, before a client runs again.
    private func violations(
        of scenario: SimulatedScenario, _ records: [TransferRecord], on survivor: SimulatedMoment
    ) -> [String] {
        var found = scenario.violations(onViewOf: survivor.image)
        found += scenario.violations(of: records, on: survivor)
        if survivor.isTold { found += scenario.violations(ofSuccessOn: survivor) }
        return found
    }

    private func violations(
        of scenario: SimulatedScenario, _ records: [TransferRecord],
        _ partials: [TransferID: [DownloadPartial]], on survivor: SimulatedMoment
    ) -> [String] {
        records.flatMap { record -> [String] in
            guard case .download(let download) = record else { return [] }
            return scenario.violations(
                of: partials[record.status.id] ?? [], of: download, on: survivor)
        }
    }

    private func violationsAfterRestart(
        of scenario: SimulatedScenario, _ records: [TransferRecord], on survivor: SimulatedMoment
    ) async throws -> [String] {
        let host = try SimulatedHost(survivor)
        let end = await host.perform(scenario.request)
        let wasDone = records.contains { $0.status.state == .completed }
        return try await scenario.violations(
            atEnd: end, of: host, expecting: wasDone ? scenario.endAgain : scenario.end
        ).map { "after a restart: \($0)" }
    }
}
