internal import KedgeFiles
package import KedgeModel

extension TransferEngine {
    /// Turns a complete session into a file and waits for it, even if finalizing takes long.
    /// Idempotent.
    ///
    /// - Parameter patience: The timeout; ``EngineConfiguration/finishTimeout`` when nil.
    /// - Throws: The errors of ``finalize(_:owner:expecting:)``; `UNAVAILABLE` after the timeout.
    package func finish(
        _ id: SessionID, owner: OwnerID, expecting expected: SHA256Digest? = nil,
        timeout: Duration? = nil
    ) async throws -> FileRecord {
        try await translating {
            var waited = Duration.zero
            var step = Duration.milliseconds(20)
            while true {
                var outcome: FinalizeOutcome?
                waited += try await context.timer.measure {
                    outcome = try await finalize(id, owner: owner, expecting: expected)
                }
                if case .completed(let file) = outcome { return file }
                guard waited < timeout ?? configuration.finishTimeout else {
                    throw EngineError(.unavailable, "The file is still being verified; ask again.")
                }
                // While another node has the lease, `finalize` returns without waiting.
                try await context.timer.sleep(for: step)
                waited += step
                step = min(step * 2, .seconds(1))
            }
        }
    }

    /// Commits the last chunk of a session if only this commit is missing.
    func commitLast(of id: SessionID, owner: OwnerID) async throws {
        try await registry.withSession(id, owner: owner) { session in
            let ledger = await session.ledger
            guard ledger.record.state == .open, ledger.lacksOnlyLastCommit,
                let end = ledger.record.fileSize
            else { return }
            _ = try await sessionWriter.append(
                AppendPut(offset: end), to: session, body: NoBytes())
        }
    }
}

/// A body without bytes.
private struct NoBytes: ByteBody {
    var announcedByteCount: Int64? { 0 }

    func makeReader() async throws -> any ByteReader { Reader() }

    private final class Reader: ByteReader {
        func fill(_ buffer: IOBuffer, limit: Int) async throws -> Bool { false }
    }
}
