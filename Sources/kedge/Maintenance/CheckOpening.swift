internal import Foundation
internal import KedgeDisk
internal import KedgeEngine
internal import KedgeFiles
internal import KedgeModel
internal import KedgePostgres
internal import KedgeS3
internal import KedgeSQLite
internal import KedgeServer

/// Opens the stores for a check: without any change, or for repairs.
struct CheckOpening {
    typealias Rows = any CheckedRows & MetadataStore & QuotaRepair

    /// The identity that the service writes into rows stored beside their bytes.
    static let identityBesideRows = "disk in the data directory"

    let configuration: ServiceConfiguration
    let pool: BlockingPool

    var directory: String {
        URL(fileURLWithPath: configuration.dataDirectory).standardized.path
    }
    private var usesDirectory: Bool {
        configuration.metadata == .sqlite || configuration.bytes == .disk
    }

    /// Opens the stores for reading only, even while a service runs.
    ///
    /// - Throws: ``CommandFailure`` if they cannot be read; ``DatabaseCopyError/damaged``.
    func open() async throws -> OpenedStores {
        try await collecting { open in
            let hold = usesDirectory ? try await holdDirectory(&open) : nil
            let rows = try await openRows(besideService: hold?.isShared == true, &open)
            let (bytes, identity) = try await openBytes(rows, hold, &open)
            try await compare(rows, with: identity)
            return OpenedStores(rows: rows, bytes: bytes, repairs: nil, hold: hold, open: open)
        }
    }

    /// Opens the stores for changes, as the service does, once a check has shown that the database
    /// is sound and belongs to these bytes. With a missing or empty database, all bytes would look
    /// like orphans.
    ///
    /// - Throws: The errors of ``open()``.
    func openForRepair() async throws -> OpenedStores {
        let look = try await open()
        if look.isBesideService {
            await look.close()
            throw CommandFailure(
                "kedge: \(directory) is in use; stop the service before a repair",
                exitStatus: ExitStatus.busy)
        }
        do {
            guard try await look.rows.databaseFaults().isEmpty else { return look }
        } catch {
            await look.close()
            throw error
        }
        await look.close()
        return try await collecting { open in
            switch configuration.bytes {
            case .disk: try await repairFiles(&open)
            case .s3(let url): try await repairRows(ofObjectsAt: url, &open)
            }
        }
    }

    /// Closes the open stores if the rest cannot be opened.
    private func collecting(
        _ body: (inout OpenedResources) async throws -> OpenedStores
    ) async throws -> OpenedStores {
        var open = OpenedResources()
        do {
            return try await body(&open)
        } catch {
            await open.close()
            throw error
        }
    }
}

// MARK: - Opening unchanged

extension CheckOpening {
    private func holdDirectory(_ open: inout OpenedResources) async throws -> DiskInspection {
        let hold = try await Self.naming(directory) {
            try await DiskInspection.open(directory, pool: pool, besideOthers: true)
        }
        open.willClose { await hold.close() }
        return hold
    }

    private func openRows(
        besideService: Bool, _ open: inout OpenedResources
    ) async throws -> Rows {
        switch configuration.metadata {
        case .sqlite where besideService:
            let store = try await Self.naming(directory) {
                try await SQLiteStore.openForReading(at: directory + "/kedge.sqlite", pool: pool)
            }
            open.willClose { await Self.close(store) }
            return store
        case .sqlite:
            let copy = try await Self.naming(directory) {
                try await DatabaseCopy.make(of: directory + "/kedge.sqlite", pool: pool)
            }
            open.willClose { await copy.close() }
            return copy.store
        case .postgres(let url):
            let store = try await Self.naming("the database \(configuration.metadata)") {
                try await PostgresStore.openUnchanged(url: url, onNotice: Self.notice)
            }
            open.willClose { await Self.close(store) }
            return store
        }
    }

    /// Returns the bytes and their identity; nil for a directory without an identity.
    private func openBytes(
        _ rows: Rows, _ hold: DiskInspection?, _ open: inout OpenedResources
    ) async throws -> (any CheckedBytes, identity: String?) {
        switch (configuration.bytes, hold) {
        case (.s3(let url), _):
            let store = try openObjects(url, rows, &open)
            return (store.inspection, try await store.identity())
        case (.disk, let hold?):
            let identity: String? =
                configuration.metadata == .sqlite
                ? Self.identityBesideRows
                : try await Self.naming(directory) { try await hold.identity() }
            return (hold, identity)
        case (.disk, nil):
            preconditionFailure("bytes on disk are in the directory")
        }
    }

    /// Compares the identity in the rows with that of the bytes.
    ///
    /// - Throws: ``CommandFailure`` if the rows belong to other bytes: everything would seem lost.
    private func compare(_ rows: Rows, with identity: String?) async throws {
        let bound: String?
        do {
            bound = try await rows.byteStoreIdentity()
        } catch MetadataError.failed {
            // A damaged database is a finding of the check.
            return
        }
        guard let bound, bound != identity else { return }
        throw CommandFailure(
            "kedge: the rows belong to bytes in \"\(bound)\", not in \"\(identity ?? directory)\"; "
                + "check them with the settings of the service",
            exitStatus: ExitStatus.configuration)
    }
}

// MARK: - Repairing

extension CheckOpening {
    private func repairFiles(_ open: inout OpenedResources) async throws -> OpenedStores {
        let bytes = try await Self.naming(directory) {
            try await DiskStore.open(directory, pool: pool)
        }
        open.willClose { await bytes.close() }
        let metadata = try await openMetadata(&open)
        let identity =
            configuration.metadata == .sqlite
            ? Self.identityBesideRows : try await bytes.identity()
        try await metadata.bind(toBytesAt: identity)
        return OpenedStores(
            rows: metadata, bytes: bytes.inspection,
            repairs: RepairedStores(metadata: metadata, bytes: bytes), hold: nil, open: open)
    }

    /// Opens the rows for repairs; objects are never changed.
    private func repairRows(
        ofObjectsAt url: String, _ open: inout OpenedResources
    ) async throws -> OpenedStores {
        if configuration.metadata == .sqlite {
            let lock = try await Self.naming(directory) {
                try await DirectoryLock.take(directory, pool: pool)
            }
            open.willClose { await lock.release() }
        }
        let metadata = try await openMetadata(&open)
        let store = try openObjects(url, metadata, &open)
        try await metadata.bind(toBytesAt: try await store.identity())
        return OpenedStores(
            rows: metadata, bytes: store.inspection,
            repairs: RepairedStores(metadata: metadata, bytes: nil), hold: nil, open: open)
    }

    private func openMetadata(_ open: inout OpenedResources) async throws -> Rows {
        let store: Rows
        switch configuration.metadata {
        case .sqlite:
            store = try await Self.naming(directory) {
                try await SQLiteStore.open(
                    at: directory + "/kedge.sqlite", now: SystemWallClock().now(), pool: pool,
                    onFatal: { message in
                        // As in the service: only the next process knows what is stored.
                        StandardError.write("kedge: the database failed: \(printable(message))\n")
                        endProcess(ExitStatus.failure)
                    })
            }
        case .postgres(let url):
            store = try await Self.naming("the database \(configuration.metadata)") {
                try await PostgresStore.open(url: url, onNotice: Self.notice)
            }
        }
        open.willClose { await Self.close(store) }
        return store
    }
}

// MARK: - Both

extension CheckOpening {
    private func openObjects(
        _ url: String, _ rows: Rows, _ open: inout OpenedResources
    ) throws -> S3Store {
        let environment = ProcessInfo.processInfo.environment
        let settings: S3Configuration
        do {
            settings = try S3Configuration(url: url, environment: environment)
        } catch {
            throw CommandFailure("kedge: bytes: \(error)", exitStatus: ExitStatus.configuration)
        }
        let store = S3Store(
            settings,
            credentials: CredentialsChain.standard(
                environment: environment, region: settings.region, pool: pool),
            records: rows, pool: pool)
        open.willClose { await store.close() }
        return store
    }

    private static func notice(_ message: String) {
        StandardError.write("kedge: the database: \(printable(message))\n")
    }

    private static func close(_ store: Rows) async {
        do {
            try await store.close()
        } catch {
            let cause = printable(String(reflecting: error))
            StandardError.write("kedge: closing the database: \(cause)\n")
        }
    }
}
