package import KedgeEngine
package import KedgeModel

extension PostgresStore {
    /// Idempotent: a second run finds the chunks committed.
    package func commit(
        _ chunks: [CommittedChunk], touching touch: SessionUpdate
    ) async throws -> [ChunkOutcome] {
        try await write { db in
            let session = try db.lockedSession(touch.id, in: .open)
            for writer in touch.otherWriters { try db.check(writer, of: touch.id) }
            var firsts: [Int: SHA256Digest] = [:]
            var new: [CommittedChunk] = []
            for chunk in chunks where firsts[chunk.index] == nil {
                firsts[chunk.index] = chunk.digest
                new.append(chunk)
            }
            let stored = try db.insert(new, of: session, touch)
            let end = new.filter { stored[$0.index] == nil }
                .map { session.end(of: $0.index, $0.byteCount) }.max()
            var isNew = Set(firsts.keys).subtracting(stored.keys)
            let outcomes = chunks.map { chunk -> ChunkOutcome in
                let winner = stored[chunk.index] ?? firsts[chunk.index] ?? chunk.digest
                if winner != chunk.digest { return .conflict(stored: winner) }
                return isNew.remove(chunk.index) == nil ? .alreadyCommitted : .committed
            }
            let hasConflict = outcomes.contains { if case .conflict = $0 { true } else { false } }
            if hasConflict { throw RolledBack(value: outcomes) }
            try db.reserve(upTo: end ?? 0, for: session, within: touch.quota)
            // After the search for conflicts, since a stored chunk may belong to a layout without
            // this index.
            for chunk in new where stored[chunk.index] == nil { try session.check(chunk) }
            return outcomes
        }
    }

    /// Idempotent: the partial replaces itself.
    package func savePartial(
        _ partial: PartialRecord, touching touch: SessionUpdate
    ) async throws {
        try await write { db in
            let session = try db.lockedSession(touch.id, in: .open)
            try session.check(partial)
            try db.save(partial, of: session, touch)
            if !partial.isRival {
                let end = session.end(of: partial.index, partial.byteCount)
                try db.reserve(upTo: end, for: session, within: touch.quota)
            }
        }
    }

    /// Idempotent: a missing partial is not an error.
    package func discardPartial(
        of id: SessionID, index: Int, isRival: Bool, by writer: FencingToken?
    ) async throws {
        try await write { db in
            // The partials of a deleted session are deleted, too.
            guard let session = try db.lockedSession(id) else { return }
            if let writer { try db.check(writer, of: id) }
            try db.discardPartial(index, isRival: isRival, of: session, by: writer)
        }
    }

    /// A second run discards nothing that was added after the first: the revision shows it, and the
    /// run throws `writerReplaced`.
    package func invalidateChunks(touching touch: SessionUpdate) async throws {
        try await write { db in
            let session = try db.lockedSession(touch.id, in: .open)
            if let writer = touch.writer { try db.check(writer, of: touch.id) }
            let isPromised =
                try db.query(
                    "SELECT 1 FROM finalize_job WHERE session = $1", [.int8(session.number)]
                ).rowCount > 0
            guard session.isHashGood(asOf: touch.revision), !isPromised else {
                throw MetadataError.writerReplaced
            }
            for table in ["chunk", "partial_chunk", "rival_partial"] {
                _ = try db.query(
                    "DELETE FROM \(table) WHERE session = $1", [.int8(session.number)])
            }
            _ = try db.query(
                """
                UPDATE session SET prefix_offset = NULL, prefix_state = NULL, staging_state = NULL,
                    revision = revision + 1, reset_revision = revision + 1
                WHERE number = $1
                """, [.int8(session.number)])
            try db.notify(touch.id)
        }
    }

    /// Not idempotent: a second run also discards chunks that were added in between, and the client
    /// sends them again.
    package func invalidateChunks(_ indexes: [Int], of id: SessionID) async throws {
        try await write { db in
            let session = try db.lockedSession(id, in: .open, .finalizing)
            try db.invalidate(indexes, of: session)
        }
    }

    /// A second run after a lost answer finds the revision outdated and changes nothing.
    package func invalidateDamagedChunks(
        _ indexes: [Int], of id: SessionID, knowing revision: Int64?
    ) async throws {
        try await write { db in
            let session = try db.lockedSession(id, in: .open)
            guard session.isHashGood(asOf: revision) else { throw MetadataError.writerReplaced }
            try db.invalidate(indexes, of: session)
        }
    }

    /// Idempotent: a prefix that is not longer changes nothing.
    package func savePrefix(
        _ prefix: HashCheckpoint, of id: SessionID, knowing revision: Int64?
    ) async throws {
        try await write { db in
            let session = try db.lockedSession(id, in: .open, .finalizing)
            guard session.isHashGood(asOf: revision),
                prefix.offset > session.record.prefix?.offset ?? -1
            else { return }
            _ = try db.query(
                """
                UPDATE session SET prefix_offset = $2, prefix_state = $3, revision = revision + 1
                WHERE number = $1
                """, [.int8(session.number), .int8(prefix.offset), .bytea(prefix.state)])
            try db.notify(id)
        }
    }
}
