internal import Foundation
internal import KedgeDisk
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel
internal import KedgeSQLite

/// The stores of a data directory, open for a check that nobody else disturbs.
struct CheckPlace {
    let rows: any CheckedRows
    let bytes: any CheckedBytes
    /// Nil when nothing may be changed.
    let repairs: RepairedStores?
    private let inspection: DiskInspection
    private let copy: DatabaseCopy?

    /// Opens the directory so that looking changes nothing.
    ///
    /// - Throws: ``CommandFailure`` when it cannot be looked at, ``DatabaseCopyError/damaged``.
    static func open(_ directory: String, pool: BlockingPool) async throws -> CheckPlace {
        try await opening(directory) {
            let inspection = try await DiskInspection.open(directory, pool: pool)
            do {
                let copy = try await DatabaseCopy.make(of: database(in: directory), pool: pool)
                return CheckPlace(
                    rows: copy.store, bytes: inspection, repairs: nil, inspection: inspection,
                    copy: copy)
            } catch {
                await inspection.close()
                throw error
            }
        }
    }

    /// Opens the directory for changes, as the service does, once a copy of the database has shown that
    /// it is whole. A missing or empty one would make orphans of everything.
    ///
    /// - Throws: As ``open(_:pool:)``.
    static func openForRepair(_ directory: String, pool: BlockingPool) async throws -> CheckPlace {
        let look = try await open(directory, pool: pool)
        let faults = try await look.rows.databaseFaults()
        guard faults.isEmpty else { return look }
        await look.close()
        return try await opening(directory) {
            let bytes = try await DiskStore.open(directory, pool: pool)
            do {
                let metadata = try await SQLiteStore.open(
                    at: database(in: directory), now: SystemWallClock().now(), pool: pool,
                    onFatal: { message in
                        // As in the service: what is stored is only known to the next process.
                        StandardError.write("kedge: the database failed: \(message)\n")
                        endProcess(ExitStatus.failure)
                    })
                let inspection = bytes.inspection
                return CheckPlace(
                    rows: metadata, bytes: inspection,
                    repairs: RepairedStores(metadata: metadata, bytes: bytes),
                    inspection: inspection, copy: nil)
            } catch {
                await bytes.close()
                throw error
            }
        }
    }

    /// - Throws: ``CommandFailure`` when a process came in between.
    func confirmUndisturbed() async throws {
        try await Self.opening("the data directory") { try await inspection.confirmUndisturbed() }
    }

    /// Gives everything up.
    func close() async {
        await copy?.close()
        await inspection.close()
        guard let repairs else { return }
        do {
            try await repairs.metadata.close()
        } catch {
            StandardError.write("kedge: closing the database: \(String(reflecting: error))\n")
        }
        await repairs.bytes.close()
    }

    private static func database(in directory: String) -> String { directory + "/kedge.sqlite" }

    private static func opening<Result>(
        _ directory: String, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch DatabaseCopyError.damaged {
            throw DatabaseCopyError.damaged
        } catch DiskStoreError.inUse {
            throw CommandFailure(
                "kedge: \(directory) is in use; stop the service first", exitStatus: ExitStatus.busy
            )
        } catch DatabaseCopyError.missing {
            throw CommandFailure("kedge: \(directory) is no data directory: it has no kedge.sqlite")
        } catch DatabaseCopyError.otherSchema(let found, let known) {
            throw CommandFailure(
                "kedge: the database has schema \(found), this program checks schema \(known); "
                    + "an older one is brought up to date by kedge migrate")
        } catch {
            throw CommandFailure(
                "kedge: \(directory) cannot be checked: \(String(reflecting: error))")
        }
    }
}
