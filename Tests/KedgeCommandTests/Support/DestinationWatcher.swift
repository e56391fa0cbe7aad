import Foundation
import KedgeLocks
import KedgeModel
import KedgeTesting

/// Opens a download's destination repeatedly from the moment it exists, and records wrong content.
final class DestinationWatcher: Sendable {
    private struct State {
        var isStopped = false
        var sightCount = 0
        var wrongSights: [String] = []
    }
    private let state = Mutex(State())

    /// Begins to watch.
    ///
    /// - Parameter digest: Digest that the file must have whenever it exists.
    init(_ path: String, digest: SHA256Digest) {
        // The thread ends with the watcher, also when a test fails halfway.
        Thread.detachNewThread { [weak self] in
            while let watcher = self, !watcher.isStopped {
                if access(path, F_OK) == 0 { watcher.judge(path, digest) }
                usleep(500)
            }
        }
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    private func judge(_ path: String, _ digest: SHA256Digest) {
        let verdict: String?
        do {
            let found = try SampleFile.digest(of: path)
            verdict = found == digest ? nil : "a file with SHA-256 \(found)"
        } catch {
            verdict = "\(error)"
        }
        state.withLock { state in
            state.sightCount += 1
            if let verdict { state.wrongSights.append(verdict) }
        }
        usleep(20_000)
    }

    /// Stops after at least one more look at the present file.
    ///
    /// - Returns: The number of looks at a file, and the wrong ones.
    func stop() async throws -> (sightCount: Int, wrongSights: [String]) {
        let before = state.withLock { $0.sightCount }
        try await eventually("the watcher looks again", within: .seconds(20)) {
            state.withLock { $0.sightCount } > before
        }
        state.withLock { $0.isStopped = true }
        return state.withLock { ($0.sightCount, $0.wrongSights) }
    }
}
