internal import KedgeFiles
internal import KedgeLocks
package import KedgeModel

/// The database's clock, so that nodes with different clocks agree on leases and expiry.
///
/// Between two answers of the database it continues with this machine's monotonic clock. It may
/// step back by the drift of the two clocks between two answers: some milliseconds.
package final class DatabaseClock: WallClock {
    private struct Sample {
        /// The database's time at ``instant``.
        let time: Timestamp
        let instant: ContinuousClock.Instant
    }

    /// The statement that reads the time: milliseconds since 1970. Unlike `now()`,
    /// `clock_timestamp()` advances within a transaction.
    static let question = "SELECT \(expression)"
    /// The current time as an SQL expression.
    static let expression = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

    /// Age at which a sample is renewed. A bad clock drifts 6 ms in this time, at 200 ppm.
    private static let sampleLifetime: Duration = .seconds(30)

    /// An answer that took longer may be wrong by half of this. It never replaces a sample.
    private static let slowAnswer: Duration = .milliseconds(250)

    private let sample = Mutex<Sample?>(nil)

    init() {}

    /// Returns the database's time, without asking it.
    ///
    /// - Precondition: The database has answered once;
    ///   ``PostgresStore/open(url:configuration:onNotice:)`` ensures it.
    package func now() -> Timestamp {
        guard let sample = sample.withLock({ $0 }) else {
            preconditionFailure("the database's clock was not read yet")
        }
        return sample.time.advanced(by: sample.instant.duration(to: .now))
    }

    /// Whether the sample must be renewed.
    var isStale: Bool {
        sample.withLock { sample in
            guard let sample else { return true }
            return sample.instant.duration(to: .now) > Self.sampleLifetime
        }
    }

    /// Reads the database's clock.
    func refresh(from connection: PostgresConnection) throws {
        let start = ContinuousClock.Instant.now
        guard var row = try connection.query(Self.question).firstRow else { return }
        let end = ContinuousClock.Instant.now
        let time = Timestamp(millisecondsSinceEpoch: try row.integer())
        // The database read its clock at some moment in between.
        let instant = start.advanced(by: start.duration(to: end) / 2)
        sample.withLock { sample in
            // The older sample is more precise than a slow answer.
            guard sample == nil || start.duration(to: end) < Self.slowAnswer else { return }
            sample = Sample(time: time, instant: instant)
        }
    }
}
