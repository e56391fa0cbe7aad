internal import Foundation

/// Seeds of randomized tests: the same in every run, and others in each run with `KEDGE_TORTURE=1`.
/// The name of the test case or its failure shows the seed; `TEST_SEED` repeats the seeds from that
/// one on.
package enum TortureSeeds {
    /// Whether seeds are drawn that no earlier run has proven.
    package static var areFresh: Bool { fresh != nil }

    /// Returns `count` seeds in a row, from `first` on in runs without torture.
    package static func range(from first: UInt64, count: UInt64) -> Range<UInt64> {
        let start = fresh ?? first
        return start..<start + count
    }

    private static let fresh: UInt64? = {
        let environment = ProcessInfo.processInfo.environment
        guard environment["KEDGE_TORTURE"] == "1" else { return nil }
        return environment["TEST_SEED"].flatMap { UInt64($0) }
            ?? UInt64.random(in: 1_000...999_999_999)
    }()
}
