internal import KedgeDisk
internal import KedgeModel
internal import KedgePostgres
internal import KedgeSQLite

extension CheckOpening {
    /// Runs the body; a failure names the store that could not be opened, and why.
    static func naming<Result>(
        _ place: String, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch DatabaseCopyError.damaged {
            throw DatabaseCopyError.damaged
        } catch {
            throw failure(error, at: place)
        }
    }

    private static func failure(_ error: any Error, at place: String) -> CommandFailure {
        switch error {
        case DiskStoreError.inUse:
            CommandFailure(
                "kedge: \(place) is in use; stop the service first", exitStatus: ExitStatus.busy)
        case DatabaseCopyError.missing:
            CommandFailure("kedge: \(place) is not a data directory: it has no kedge.sqlite")
        case DatabaseCopyError.otherSchema(let found, let known): otherSchema(found, known)
        case PostgresStoreError.olderSchema(let found, let known): otherSchema(found, known)
        default: CommandFailure("kedge: \(place) cannot be checked: \(String(reflecting: error))")
        }
    }

    private static func otherSchema(_ found: Int, _ known: Int) -> CommandFailure {
        CommandFailure(
            "kedge: the database has schema \(found), this program checks schema \(known); "
                + "kedge migrate updates an older one")
    }
}
