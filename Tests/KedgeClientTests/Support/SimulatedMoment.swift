import Foundation
import KedgeClient
import KedgeModel
import KedgeTesting

/// A client's machine and its server at one moment, as a value that a test can return to.
struct SimulatedMoment: Sendable {
    /// The step that would have come next.
    var next = "the start"
    var image: DiskImage
    var database = SimulatedDatabase()
    var server = FakeServer.State()
    /// Directory of the client's records and locks; nil when there was none yet.
    var stateDirectory: String?
    /// True once the command has reported its success.
    var isTold = false
    /// The limits by which a client of this machine records unfinished chunks.
    var limits = CheckpointLimits()

    /// Returns the machine after a power cut at this moment. The server is not affected.
    func surviving(_ cut: Cut) -> SimulatedMoment {
        var moment = self
        moment.image = image.surviving(cut)
        return moment
    }
}

/// The files of a client's records at one moment.
struct SimulatedDatabase: Sendable {
    /// The log is last: only a checkpoint changes the database file, and it leaves the log
    /// unchanged. The shared memory is missing: a machine that starts has none.
    private static let names = ["transfers.sqlite", "transfers.sqlite-wal"]

    private var files: [String: Data] = [:]

    /// Makes a database without records.
    init() {}

    /// Reads the files as a power cut would leave them. A commit in progress may be torn: SQLite
    /// discards pages that its checksums do not confirm.
    init(at directory: String) {
        for name in Self.names {
            files[name] = FileManager.default.contents(atPath: "\(directory)/\(name)")
        }
    }

    func write(to directory: String) throws {
        for (name, bytes) in files {
            try bytes.write(to: URL(fileURLWithPath: "\(directory)/\(name)"))
        }
    }

    /// Returns the records that the next client would read.
    func records() async throws -> [TransferRecord] {
        try await read { try await $0.records() }
    }

    /// Returns the records and their entries about unfinished chunks.
    func content() async throws -> (
        records: [TransferRecord], partials: [TransferID: [DownloadPartial]]
    ) {
        try await read { store in
            let records = try await store.records()
            var partials: [TransferID: [DownloadPartial]] = [:]
            for record in records {
                partials[record.status.id] = try await store.partials(of: record.status.id)
            }
            return (records, partials)
        }
    }

    private func read<Value: Sendable>(
        _ body: (TransferStore) async throws -> Value
    ) async throws -> Value {
        let directory = try TemporaryDirectory()
        try write(to: directory.path)
        let store = try await TransferStore.open(
            path: directory.path + "/transfers.sqlite", environment: .system)
        let value = try await body(store)
        try await store.close()
        return value
    }
}
