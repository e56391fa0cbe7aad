package import KedgeFiles
package import KedgeHash
package import KedgeModel

/// Time, randomness and file system as parameters, for tests to replace.
package struct ClientEnvironment: Sendable {
    package var files: any FileSystem
    package var now: @Sendable () -> Timestamp
    /// Sleeps; throws `CancellationError` when the task is canceled meanwhile.
    package var sleep: @Sendable (Duration) async throws -> Void
    package var makeGenerator: @Sendable () -> AnyGenerator
    /// Sleeps between two polls of a loop. Most tests use real time: nothing depends on its length.
    package var pause: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    /// Limits of what a kill or a power cut may cost of a download's unfinished chunk.
    package var checkpointLimits = CheckpointLimits()
    /// Limits of the waits of chunks for each other in the hashing of a download.
    package var hashStepLimits = FileHashStep.Limits()
    /// Makes a pool with the given number of threads.
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

    private static let measuredLimits = FileHashStep.Limits.measured()

    /// The real file system, clock and generator.
    package static var system: ClientEnvironment {
        var environment = ClientEnvironment(
            files: POSIXFileSystem(), now: { Timestamp.current },
            sleep: { try await Task.sleep(for: $0) },
            makeGenerator: { AnyGenerator(SystemRandomNumberGenerator()) })
        environment.hashStepLimits = measuredLimits
        return environment
    }
}
