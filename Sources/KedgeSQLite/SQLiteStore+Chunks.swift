internal import GRDB
package import KedgeEngine
package import KedgeModel

extension SQLiteStore {
    package func commit(
        _ chunks: [CommittedChunk], touching touch: SessionUpdate
    ) async throws -> [ChunkOutcome] {
        try await commits.write { db in
            let session = try db.session(touch.id, in: .open)
            var outcomes: [ChunkOutcome] = []
            var new: [CommittedChunk] = []
            var newDigests: [Int: SHA256Digest] = [:]
            for chunk in chunks {
                let stored =
                    try newDigests[chunk.index]
                    ?? db.digest(ofChunk: chunk.index, of: session)
                switch stored {
                case nil:
                    outcomes.append(.committed)
                    new.append(chunk)
                    newDigests[chunk.index] = chunk.digest
                case chunk.digest: outcomes.append(.alreadyCommitted)
                case .some(let digest): outcomes.append(.conflict(stored: digest))
                }
            }
            let hasConflict = outcomes.contains { if case .conflict = $0 { true } else { false } }
            if hasConflict { return outcomes }
            for chunk in new { try db.insert(chunk, of: session) }
            let end = new.map { session.end(of: $0.index, $0.byteCount) }.max() ?? 0
            try db.reserve(upTo: end, for: session, within: touch.quota)
            for chunk in chunks {
                for isRival in [false, true] {
                    try db.deletePartial(chunk.index, isRival: isRival, of: session)
                }
            }
            try db.touch(session, touch)
            return outcomes
        }
    }

    package func savePartial(
        _ partial: PartialRecord, touching touch: SessionUpdate
    ) async throws {
        try await commits.write { db in
            let session = try db.session(touch.id, in: .open)
            if try db.digest(ofChunk: partial.index, of: session) == nil {
                try db.save(partial, of: session)
                if !partial.isRival {
                    let end = session.end(of: partial.index, partial.byteCount)
                    try db.reserve(upTo: end, for: session, within: touch.quota)
                }
            }
            try db.touch(session, touch)
        }
    }

    package func discardPartial(
        of id: SessionID, index: Int, isRival: Bool, by writer: FencingToken?
    ) async throws {
        try await commits.write { db in
            // The partials of a deleted session are deleted, too.
            guard let session = try db.session(id) else { return }
            try db.deletePartial(index, isRival: isRival, of: session)
        }
    }

    package func invalidateChunks(touching touch: SessionUpdate) async throws {
        try await commits.write { db in
            let session = try db.session(touch.id, in: .open)
            let isPromised = try db.exists(
                "SELECT 1 FROM finalize_job WHERE session = ?", [session.number])
            guard !isPromised else { throw MetadataError.writerReplaced }
            try db.run("DELETE FROM chunk WHERE session = ?", [session.number])
            try db.deletePartials(of: session)
            try db.run(
                """
                UPDATE session SET prefix_offset = NULL, prefix_state = NULL, staging_state = NULL
                WHERE number = ?
                """, [session.number])
        }
    }

    package func invalidateChunks(_ indexes: [Int], of id: SessionID) async throws {
        try await commits.write { db in
            let session = try db.session(id, in: .open, .finalizing)
            try db.invalidate(indexes, of: session)
        }
    }

    package func invalidateDamagedChunks(
        _ indexes: [Int], of id: SessionID, knowing revision: Int64?
    ) async throws {
        try await commits.write { db in
            let session = try db.session(id, in: .open)
            try db.invalidate(indexes, of: session)
        }
    }
}

extension Database {
    /// Deletes the rows of chunks, every partial, the prefix and the finalize job.
    fileprivate func invalidate(_ indexes: [Int], of session: SessionRow) throws {
        for index in indexes {
            try run("DELETE FROM chunk WHERE session = ? AND idx = ?", [session.number, index])
        }
        try deletePartials(of: session)
        try run(
            "UPDATE session SET prefix_offset = NULL, prefix_state = NULL WHERE number = ?",
            [session.number])
        try discardFinalize(of: session)
        // Without chunks the recorded multipart upload is useless; the next chunk begins a new one.
        if try !exists("SELECT 1 FROM chunk WHERE session = ?", [session.number]) {
            try run("UPDATE session SET staging_state = NULL WHERE number = ?", [session.number])
        }
    }
}
