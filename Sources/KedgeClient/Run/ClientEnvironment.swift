package import KedgeFiles
package import KedgeModel

/// Time, chance and disk as parameters, so that tests can put their own in place.
package struct ClientEnvironment: Sendable {
    package var files: any FileSystem
    package var now: @Sendable () -> Timestamp
    /// Sleeps; throws `CancellationError` when the task is canceled meanwhile.
    package var sleep: @Sendable (Duration) async throws -> Void
    package var makeGenerator: @Sendable () -> AnyGenerator
    /// Sleeps between two looks of a loop that waits for something to change. Real time in most tests:
    /// nothing depends on its length.
    package var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    /// How much of a download's unfinished chunk a kill or a power cut may cost.
    package var partialLimits = PartialLimits()
    /// Makes a pool with so many threads.
    package var makePool: @Sendable (Int) -> BlockingPool = { BlockingPool(threadCount: $0) }

    package init(
        files: any FileSystem, now: @escaping @Sendable () -> Timestamp,
        sleep: @escaping @Sendable (Duration) async throws -> Void,
        makeGenerator: @escaping @Sendable () -> AnyGenerator
    ) {
        self.files = files
        self.now = now
        self.sleep = sleep
        self.makeGenerator = makeGenerator
    }

    /// The real disk, clock and generator.
    package static var system: ClientEnvironment {
        ClientEnvironment(
            files: POSIXFileSystem(), now: { Timestamp.current },
            sleep: { try await Task.sleep(for: $0) },
            makeGenerator: { AnyGenerator(SystemRandomNumberGenerator()) })
    }
}
