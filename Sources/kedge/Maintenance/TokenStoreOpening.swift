internal import Foundation
internal import KedgeDisk
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeIdentity
internal import KedgeModel
internal import KedgePostgres
internal import KedgeSQLite
internal import KedgeServer

/// Opens the store of API tokens, owners and keys of links for one command.
///
/// PostgreSQL is opened beside running services. SQLite belongs to one process, so the command
/// holds the lock of the data directory meanwhile.
struct TokenStoreOpening {
    typealias Rows = any MetadataStore & LinkStore & OwnerStore & TokenStore

    let configuration: ServiceConfiguration
    /// Whether a data directory and a database are made if there are none.
    let mayCreate: Bool
    /// The rest of the message for a data directory that a running service uses.
    var adviceInUse =
        ", which does not answer at its socket admin.sock; use --server, or stop it first"
    let pool = BlockingPool(threadCount: 2)

    init(_ configuration: ServiceConfiguration, mayCreate: Bool) {
        self.configuration = configuration
        self.mayCreate = mayCreate
    }

    private var directory: String {
        URL(fileURLWithPath: configuration.dataDirectory).standardized.path
    }

    /// Lends the store and its clock.
    ///
    /// - Throws: ``CommandFailure`` if the store cannot be used.
    func use<Result>(
        _ body: (Rows, any WallClock) async throws -> Result
    ) async throws -> Result {
        switch configuration.metadata {
        case .sqlite:
            try await requireDatabase()
            let lock = try await naming(directory) {
                try await DirectoryLock.take(directory, pool: pool)
            }
            do {
                let result = try await lend(directory, openSQLite, body)
                await lock.release()
                return result
            } catch {
                await lock.release()
                throw error
            }
        case .postgres(let url):
            return try await lend(
                "the database \(configuration.metadata)",
                {
                    try await PostgresStore.open(url: url) { message in
                        StandardError.write("kedge: the database: \(printable(message))\n")
                    }
                }, body)
        }
    }

    /// Refuses a directory without a database, which is probably a mistyped one, unless one may be
    /// made. Refuses a directory of another user: the service could not use what this one makes.
    private func requireDatabase() async throws {
        let (exists, ownerID) = try await naming(directory) {
            try await pool.run { [directory] in
                let files = POSIXFileSystem()
                return (
                    try files.status(of: directory + "/kedge.sqlite") != nil,
                    try files.status(of: directory)?.ownerID
                )
            }
        }
        if let ownerID, ownerID != geteuid() {
            throw CommandFailure(
                "kedge: \(directory) belongs to another user (id \(ownerID)); run the command as"
                    + " that user, for example with runuser or setpriv")
        }
        if mayCreate, !exists {
            StandardError.write("kedge: a new database is made in \(printable(directory))\n")
        }
        guard exists || mayCreate else {
            throw CommandFailure(
                "kedge: \(directory) is not a data directory: it has no kedge.sqlite")
        }
    }

    private func openSQLite() async throws -> Rows {
        try await SQLiteStore.open(
            at: directory + "/kedge.sqlite", now: SystemWallClock().now(), pool: pool,
            onFatal: { message in
                StandardError.write("kedge: the database failed: \(printable(message))\n")
                endProcess(ExitStatus.failure)
            })
    }

    private func lend<Result>(
        _ place: String, _ open: () async throws -> Rows,
        _ body: (Rows, any WallClock) async throws -> Result
    ) async throws -> Result {
        let rows = try await naming(place) { try await open() }
        let clock: any WallClock =
            (rows as? any FleetMetadataStore)?.databaseClock ?? SystemWallClock()
        let result: Result
        do {
            result = try await naming(place) { try await body(rows, clock) }
        } catch {
            // An error of closing is dropped: the first one is more useful.
            try? await rows.close()
            throw error
        }
        try await naming(place) { try await rows.close() }
        return result
    }

    /// Runs the body; a failure names the store.
    private func naming<Result>(
        _ place: String, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch let failure as CommandFailure {
            throw failure
        } catch DiskStoreError.inUse {
            throw CommandFailure(
                "kedge: \(place) is in use by a running service\(adviceInUse)",
                exitStatus: ExitStatus.busy)
        } catch {
            throw CommandFailure("kedge: \(place) cannot be used: \(Self.reason(error))")
        }
    }

    /// Returns the cause without names of types.
    private static func reason(_ error: any Error) -> String {
        switch error {
        case MetadataError.unavailable(let text), MetadataError.failed(let text): text
        default: "\(error)"
        }
    }
}
