import KedgeEngine
import KedgeLocks
import KedgePostgres
import KedgeTesting

/// Opens a store with few connections: the tests run side by side on one server.
func openStore(
    _ url: String, _ configure: (inout PostgresConfiguration) -> Void = { _ in },
    onNotice: @escaping @Sendable (String) -> Void = { _ in }
) async throws -> PostgresStore {
    var configuration = PostgresConfiguration()
    // Longer than in production: many tests share two processors.
    configuration.timeout = .seconds(20)
    configure(&configuration)
    let separator = url.contains("?") ? "&" : "?"
    let size = url.contains("pool_size") ? "" : "\(separator)pool_size=4"
    return try await PostgresStore.open(
        url: url + size, configuration: configuration, onNotice: onNotice)
}

/// Collects the notices of a store.
final class Notices: Sendable {
    private let texts = Mutex<[String]>([])

    func add(_ text: String) { texts.withLock { $0.append(text) } }

    var all: [String] { texts.withLock { $0 } }
}
