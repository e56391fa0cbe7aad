internal import KedgeFiles
internal import KedgeLocks
package import KedgeModel

/// The database's time of day, carried on between its answers by this machine's monotonic clock, so
/// that nodes whose own clocks differ agree on leases and expiry.
///
/// It may step back by as much as the two clocks drift apart between two answers: some
/// milliseconds.
package final class DatabaseClock: WallClock {
    private struct Sample {
        /// The database's time when ``instant`` was.
        let time: Timestamp
        let instant: ContinuousClock.Instant
    }

    /// The statement that asks for the time: milliseconds since 1970. Unlike `now()`,
    /// `clock_timestamp()` does not stand still in a transaction.
    static let question = "SELECT \(expression)"
    /// The same as an expression.
    static let expression = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

    /// Drift of a bad clock in this time, at 200 ppm: 6 ms.
    private static let sampleLifetime: Duration = .seconds(30)

    /// An answer that took longer may be wrong by half of this.
    private static let slowAnswer: Duration = .milliseconds(250)

    private let sample = Mutex<Sample?>(nil)

    init() {}

    /// - Precondition: The database has answered once;
    ///   ``PostgresStore/open(url:configuration:onNotice:)`` sees to it.
    package func now() -> Timestamp {
        guard let sample = sample.withLock({ $0 }) else {
            preconditionFailure("the database's clock was not read yet")
        }
        return sample.time.advanced(by: sample.instant.duration(to: .now))
    }

    /// True when it is time to ask again.
    var isStale: Bool {
        sample.withLock { sample in
            guard let sample else { return true }
            return sample.instant.duration(to: .now) > Self.sampleLifetime
        }
    }

    /// Asks the database.
    func refresh(from connection: PostgresConnection) throws {
        let start = ContinuousClock.Instant.now
        guard var row = try connection.query(Self.question).firstRow else { return }
        let end = ContinuousClock.Instant.now
        let time = Timestamp(millisecondsSinceEpoch: try row.integer())
        // It looked at its clock some time in between.
        let instant = start.advanced(by: start.duration(to: end) / 2)
        sample.withLock { sample in
            // After a slow answer the older one says more, unless there is none.
            guard sample == nil || start.duration(to: end) < Self.slowAnswer else { return }
            sample = Sample(time: time, instant: instant)
        }
    }
}
