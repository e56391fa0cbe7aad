import Foundation
import KedgeEngine
import KedgeTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct FsckQuotaTests {
    private let fixture: EngineEnvironment

    init() throws { fixture = try EngineEnvironment() }

    /// Changes rows in the shell of the database, as an administrator may.
    private func change(_ sql: String) throws {
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        shell.arguments = ["sqlite3", "-batch", "-bail", fixture.databasePath, sql]
        try shell.run()
        shell.waitUntilExit()
        #expect(shell.terminationStatus == 0)
    }

    @Test func `wrong sums of an owner are reported, and a repair corrects them`() async throws {
        let node = try await fixture.start()
        let upload = try await node.begin(sampleBytes(3500))
        try await node.put(0, of: upload)
        try await node.kill()
        #expect(try await fixture.check() == [])

        try change("UPDATE owner SET open_sessions = 9, reserved_bytes = 0")
        for _ in 0..<2 {
            let found = try await fixture.check()
            #expect(found.map(\.kind) == [.quotaDrift])
            #expect(!found.contains { $0.isRepaired || $0.isNotice })
        }
        let repaired = try await fixture.repair()
        #expect(repaired.map(\.kind) == [.quotaDrift])
        #expect(!repaired.contains { !$0.isRepaired })
        #expect(try await fixture.check(scrubbing: true) == [])
    }
}
