import Foundation
import KedgeModel
import KedgeTesting

@testable import KedgeClient

/// A client's machine at one moment, and the server beside it: a value to come back to.
struct SimulatedMoment: Sendable {
    /// What would have come next.
    var next = "the start"
    var image: DiskImage
    var database = SimulatedDatabase()
    var server = FakeServer.State()
    /// Where the client keeps its records and its locks; nil when there was none yet.
    var stateDirectory: String?
    /// True once somebody was told that the command is done.
    var isTold = false
    /// How a client of this machine records unfinished chunks.
    var limits = PartialLimits()

    /// The machine when the power goes at this moment. The server has its own.
    func surviving(_ cut: Cut) -> SimulatedMoment {
        var moment = self
        moment.image = image.surviving(cut)
        return moment
    }
}

/// The files of a client's records as they were at one moment.
struct SimulatedDatabase: Sendable {
    /// The log last: only a checkpoint changes the file before it, and leaves the log as it is. Not
    /// the shared memory: a machine that starts has none.
    private static let names = ["transfers.sqlite", "transfers.sqlite-wal"]

    private var files: [String: Data] = [:]

    /// No records yet.
    init() {}

    /// Reads the files as the power would leave them. A commit under way may be torn: SQLite
    /// discards what its checksums do not confirm.
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

    /// What the records say to whoever opens them next.
    func records() async throws -> [TransferRecord] {
        try await read { try await $0.records() }
    }

    /// The same, with what they say of unfinished chunks.
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
