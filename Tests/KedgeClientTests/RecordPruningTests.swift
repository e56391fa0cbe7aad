import Foundation
import GRDB
import KedgeClient
import KedgeModel
import KedgeTesting
import Testing

/// The removal of old records at the start of a command.
@Suite(.timeLimit(.minutes(1)))
struct RecordPruningTests {
    private let fixture: TransferEnvironment

    init() throws { fixture = try TransferEnvironment() }

    /// Uploads a file and returns the transfer of it.
    private func uploaded(_ client: TransferClient) async throws -> TransferID {
        let path = try fixture.write("source.bin", TransferEnvironment.bytes(1000))
        let id = try await client.enqueueUpload(path: path)
        #expect(try await client.run(id).state == .completed)
        return id
    }

    /// Makes the records older than they are.
    private func age(_ duration: Duration) throws {
        let queue = try fixture.openRecords()
        let milliseconds = Int64(duration / .milliseconds(1))
        try queue.write { database in
            try database.execute(
                sql: """
                    UPDATE upload_transfer
                    SET created_at = created_at - :age, updated_at = updated_at - :age
                    """, arguments: ["age": milliseconds])
        }
        try queue.close()
    }

    @Test func `records of the last hour are not pruned`() async throws {
        let client = try await fixture.client()
        let id = try await uploaded(client)
        try age(.seconds(3000))
        await client.pruneRecords(olderThan: .zero)
        #expect(try await client.transfers().map(\.id) == [id])
        try age(.seconds(1000))
        await client.pruneRecords(olderThan: .zero)
        #expect(try await client.transfers().isEmpty)
    }

    @Test func `records of failed transfers and younger ones are not pruned`() async throws {
        let client = try await fixture.client()
        let path = try fixture.write("failing.bin", TransferEnvironment.bytes(1000))
        fixture.plan(.answer(Reply(problem: .badRequest))) { $0.method == "PUT" }
        let failed = try await client.enqueueUpload(path: path)
        #expect(try await client.run(failed).state == .failed)
        let id = try await uploaded(client)
        try age(.seconds(20 * 86_400))
        await client.pruneRecords(olderThan: .seconds(30 * 86_400))
        #expect(try await client.transfers().count == 2)
        await client.pruneRecords(olderThan: .seconds(10 * 86_400))
        #expect(try await client.transfers().map(\.id) == [failed])
        await #expect(throws: TransferError(.transferNotFound, operation: "")) {
            try await client.transfer(id)
        }
    }

    @Test func `records that another process writes are pruned later`() async throws {
        let client = try await fixture.client()
        _ = try await uploaded(client)
        try age(.seconds(86_400))
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(
            path: fixture.path("state/transfers.sqlite"), configuration: configuration)
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        await client.pruneRecords(olderThan: .seconds(3600))
        #expect(try await client.transfers().count == 1)
        try await other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
        try other.close()
        await client.pruneRecords(olderThan: .seconds(3600))
        #expect(try await client.transfers().isEmpty)
    }
}
