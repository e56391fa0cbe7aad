import Glibc
import KedgeClient
import KedgeLocks
import KedgeModel
import KedgeTesting
import Testing

/// R46, R107, R114, R115: whichever call of the disk fails, a reported success is durable, no
/// unfinished file is visible, the error has the failure's code, no descriptor stays open, and the
/// same command completes once the disk is healed.
///
/// The first call fails, then the second, and so on, until the command runs without a failure.
@Suite(.timeLimit(.minutes(5)))
struct NthFailureTests {
    /// The way in which a call fails.
    struct Failure: Sendable, CustomStringConvertible {
        let number: Int32
        let isLasting: Bool

        var description: String {
            "\(number == ENOSPC ? "a full disk" : "a failing disk")\(isLasting ? " for good" : "")"
        }

        /// The end that the command reports.
        var end: SimulatedEnd { .refused(number == ENOSPC ? .diskFull : .storeDamaged) }

        static let all = [EIO, ENOSPC].flatMap { number in
            [false, true].map { Failure(number: number, isLasting: $0) }
        }
    }

    private static let maxPosition = 300

    private static let scenarios: [SimulatedScenario] = [
        .fresh, .replacing, .resumed, .forgotten, .sequential, .resumedInParts, .upload,
    ]

    @Test(arguments: scenarios, Failure.all)
    func `a client survives the Nth failure of its disk`(
        scenario: SimulatedScenario, failure: Failure
    ) async throws {
        let start = try await scenario.start()
        for position in 0..<Self.maxPosition {
            let host = try SimulatedHost(start)
            host.disk.plan(
                .init(after: position, with: failure.number, isLasting: failure.isLasting))
            let end = await host.perform(scenario.request)
            let hasFailed = host.disk.hasFailed
            var found = try await violations(of: scenario, end, failure, on: host)
            host.disk.plan(nil)
            let endAgain = await host.perform(scenario.request)
            let expected = end == .completed ? scenario.endAgain : scenario.end
            found += try await scenario.violations(atEnd: endAgain, of: host, expecting: expected)
                .map { "once healed: \($0)" }
            #expect(found.isEmpty, "call \(position): \(found.joined(separator: "; "))")
            guard hasFailed else { return #expect(position > 10, "hardly a call was made") }
        }
        Issue.record("it never ran without a failure")
    }

    /// Returns the violations while the disk still fails.
    private func violations(
        of scenario: SimulatedScenario, _ end: SimulatedEnd, _ failure: Failure,
        on host: SimulatedHost
    ) async throws -> [String] {
        var now = SimulatedMoment(image: host.disk.image)
        now.server = host.server.state.withLock { $0 }
        let afterCut = now.surviving(.losesAll)
        var found = scenario.violations(onViewOf: now.image)
        found += scenario.violations(onViewOf: afterCut.image).map { "after a cut: \($0)" }
        if end == .completed {
            found += scenario.violations(ofSuccessOn: afterCut)
        } else if end != failure.end {
            found.append("it was told as \(end)")
        }
        return found + (try await scenario.leaks(of: host))
    }
}
