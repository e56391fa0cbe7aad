import Foundation
import KedgeLocks
import KedgeModel

/// Somebody who opens a download's destination the moment it is there, over and over.
final class DestinationWatcher: Sendable {
    private struct State {
        var isStopped = false
        var sightCount = 0
        var wrongSights: [String] = []
    }
    private let state = Mutex(State())

    /// Begins to look.
    ///
    /// - Parameter digest: What the file must have whenever it is there.
    init(_ path: String, digest: SHA256Digest) {
        // Ends with the watcher, also when a test fails half-way.
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
            let found = try Sample.digest(of: path)
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

    /// Stops, after at least one look at a file that is there now.
    ///
    /// - Returns: How often there was something to see, and what was wrong.
    func stop() async throws -> (sightCount: Int, wrongSights: [String]) {
        let before = state.withLock { $0.sightCount }
        try await eventually("the watcher looks again", within: .seconds(20)) {
            state.withLock { $0.sightCount } > before
        }
        state.withLock { $0.isStopped = true }
        return state.withLock { ($0.sightCount, $0.wrongSights) }
    }
}
