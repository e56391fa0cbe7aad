import Foundation
import HTTPTypes
import KedgeClient
import KedgeLocks
import KedgeModel
import Testing

/// Servers that are unavailable, forget, or answer with impossible numbers.
@Suite(.timeLimit(.minutes(1)))
struct OutageTests {
    private let fixture: TransferEnvironment
    private let bytes = TransferEnvironment.bytes(600_000)
    private let isChunk: @Sendable (FakeServer.Seen) -> Bool = { $0.method == "PUT" }
    private let isStatus: @Sendable (FakeServer.Seen) -> Bool = {
        $0.method == "GET" && $0.path.contains("/sessions/")
    }

    init() throws { fixture = try TransferEnvironment() }

    private func upload() async throws -> TransferSnapshot {
        let client = try await fixture.client()
        return try await client.run(
            try await client.enqueueUpload(path: try fixture.write("source.bin", bytes)))
    }

    /// Changes the session status in the server's answer.
    private static func spoiled(
        _ change: @escaping @Sendable (inout SessionStatus) -> Void
    ) -> Fault {
        .rewrite { reply in
            // Other answers pass unchanged.
            guard
                var status = try? JSONDecoder().decode(
                    SessionStatus.self, from: Data(reply.body))
            else { return }
            change(&status)
            reply = Reply(json: status)
        }
    }

    @Test(arguments: ["offline", "dropped", "stalled", "503"])
    func `an outage is waited for, however many requests it takes`(kind: String) async throws {
        let faults: [String: Fault] = [
            "offline": .offline, "dropped": .fail(.dropped), "stalled": .fail(.stalled),
            "503": .answer(Reply(status: 503)),
        ]
        let counter = Counter()
        fixture.plan(try #require(faults[kind]), count: 100) { _ in counter.next() >= 3 }
        fixture.expectUploaded(try await upload(), bytes)
    }

    // The server answers a status before it has saved the bytes that arrived.
    @Test func `a status that lags behind does not make the client send bytes again`() async throws
    {
        fixture.plan(.dropBody(after: 20_000), count: 25, when: isChunk)
        fixture.plan(Self.spoiled { $0.partialChunks = [] }, count: 1000, when: isStatus)
        fixture.expectUploaded(try await upload(), bytes)
        #expect(fixture.seen("PUT", "/chunks/").contains { $0.fields[.expect] == "100-continue" })
    }

    @Test(arguments: [Int64.min, -1, .max])
    func `an expected offset outside the chunk is ignored`(offset: Int64) async throws {
        fixture.plan(
            .answer(Reply(problem: .offsetMismatch) { $0.expectedOffset = offset }), count: 3,
            when: isChunk)
        fixture.expectUploaded(try await upload(), bytes)
    }

    @Test(arguments: [Int64.min, -1, 0, 1, .max])
    func `a chunk size that changes within a session is a violation`(
        chunkSize: Int64
    ) async throws {
        fixture.plan(.loseResponse, when: isChunk)
        fixture.plan(Self.spoiled { $0.chunkSize = chunkSize }, count: 10_000, when: isStatus)
        let snapshot = try await upload()
        #expect(snapshot.state == .failed)
        #expect(snapshot.errorCode == .protocolViolation)
    }

    @Test func `partials that the file does not have are ignored`() async throws {
        fixture.plan(.loseResponse, when: isChunk)
        fixture.plan(
            Self.spoiled { status in
                status.partialChunks.append(PartialChunk(index: .max, receivedBytes: .max))
                status.partialChunks.append(PartialChunk(index: 3, receivedBytes: .min))
            }, count: 100, when: isStatus)
        fixture.expectUploaded(try await upload(), bytes)
    }

    /// Replaces the ranges of received chunks in the server's answer.
    private static func renamed(
        _ change: @escaping @Sendable ([[Int]]) -> [String: any Sendable]
    ) -> Fault {
        .rewrite { reply in
            // Other answers pass unchanged, and the test then misses its failure.
            guard
                var object = try? JSONSerialization.jsonObject(with: Data(reply.body))
                    as? [String: Any],
                let ranges = object.removeValue(forKey: "receivedRanges") as? [[Int]],
                object["receivedChunks"] == nil
            else { return }
            object.merge(change(ranges)) { $1 }
            guard let body = try? JSONSerialization.data(withJSONObject: object) else { return }
            reply.body = Array(body)
        }
    }

    @Test func `ranges that the file does not have are ignored`() async throws {
        fixture.plan(.loseResponse, when: isChunk)
        fixture.plan(
            Self.renamed { ["receivedRanges": [[Int.min, -1]] + $0 + [[1 << 19, .max]]] },
            count: 100, when: isStatus)
        fixture.expectUploaded(try await upload(), bytes)
    }

    @Test func `a server that only lists chunks is understood`() async throws {
        fixture.plan(.loseResponse, when: isChunk)
        fixture.plan(
            Self.renamed { ranges in
                let chunks = ranges.flatMap { Array($0[0]...$0[1]) }
                return ["receivedChunks": chunks + [-1, .min, .max, 1 << 20, 1 << 19]]
            }, count: 100, when: isStatus)
        fixture.expectUploaded(try await upload(), bytes)
        #expect(!fixture.seen("GET", "?chunks=ranges").isEmpty)
    }
}
