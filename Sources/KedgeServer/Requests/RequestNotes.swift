internal import Logging
internal import Synchronization

/// Facts about a request that its handler learns and its log line tells.
final class RequestNotes: Sendable {
    private let values = Mutex<[String: String]>([:])

    func set(_ key: String, _ value: some CustomStringConvertible) {
        values.withLock { $0[key] = value.description }
    }

    var metadata: Logger.Metadata {
        values.withLock { $0.mapValues { .string($0) } }
    }
}
