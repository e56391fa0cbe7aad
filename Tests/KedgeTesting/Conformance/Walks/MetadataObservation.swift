package import KedgeEngine
package import KedgeModel

/// All answers of a store about the rows that a test touched. Stores with equal rows give equal
/// observations.
package struct MetadataObservation: Hashable, Sendable {
    private struct Session: Hashable, Sendable {
        var record: SessionRecord
        var chunks: [CommittedChunk]
        var partials: [PartialRecord]

        init(_ progress: SessionProgress) {
            // The revision is missing: stores of one node have none.
            (record, chunks, partials) = (progress.record, progress.chunks, progress.partials)
        }
    }

    private struct File: Hashable, Sendable {
        var record: FileRecord?
        var chunkDigests: [SHA256Digest]?
    }

    private struct Area: Hashable, Sendable {
        var isKnown: Bool
        var state: String?
        var blobLocation: String?
    }

    private var sessions: [SessionID: Session] = [:]
    private var files: [FileID: File] = [:]
    private var lists: [OwnerID: [FileRecord]] = [:]
    private var areas: [StagingKey: Area] = [:]
    private var blobs: [SHA256Digest: String] = [:]
    private var needed: Set<SHA256Digest> = []
    private var unfinished: Set<UnfinishedSession> = []
    private var finalizing: Set<SessionRecord> = []

    /// Queries the store.
    package init(of store: any MetadataStore, about known: MetadataKnowledge) async throws {
        for owner in known.owners {
            for id in known.sessions {
                if let progress = try await store.progress(of: id, owner: owner) {
                    sessions[id] = Session(progress)
                }
            }
            for id in known.files {
                guard let record = try await store.file(id, owner: owner) else { continue }
                files[id] = File(
                    record: record, chunkDigests: try await Self.chunkDigests(of: record, in: store)
                )
            }
            lists[owner] = try await store.files(of: owner, after: nil, limit: 1000)
        }
        for key in known.sessions.map({ StagingKey($0) }) {
            areas[key] = Area(
                isKnown: try await store.isKnown(key), state: try await store.stagingState(of: key),
                blobLocation: try await store.blobLocation(fromStaging: key))
        }
        for digest in known.digests {
            blobs[digest] = try await store.liveFiles(with: digest, limit: 1).first?.location
            if try await store.isNeeded(digest) { needed.insert(digest) }
        }
        unfinished = Set(try await store.unfinishedSessions())
        finalizing = Set(try await store.finalizingSessions())
    }

    /// - Returns: Nil when they went with the session of a deleted file.
    private static func chunkDigests(
        of file: FileRecord, in store: any MetadataStore
    ) async throws -> [SHA256Digest]? {
        do {
            return try await store.chunkDigests(of: file)
        } catch MetadataError.notFound {
            return nil
        }
    }

    /// Describes the differences; nil when there are none.
    package func difference(to model: MetadataObservation) -> String? {
        let all = [
            Self.difference("sessions", sessions, model.sessions),
            Self.difference("files", files, model.files),
            Self.difference("lists of files", lists, model.lists),
            Self.difference("staging areas", areas, model.areas),
            Self.difference("blobs", blobs, model.blobs),
            Self.difference("needed blobs", ["all": needed], ["all": model.needed]),
            Self.difference("unfinished", ["all": unfinished], ["all": model.unfinished]),
            Self.difference("finalizing", ["all": finalizing], ["all": model.finalizing]),
        ].compactMap(\.self)
        return all.isEmpty ? nil : all.joined(separator: "\n")
    }

    private static func difference<Key: Hashable, Value: Equatable>(
        _ name: String, _ found: [Key: Value], _ expected: [Key: Value]
    ) -> String? {
        let more = found.filter { expected[$0.key] != $0.value }
        let less = expected.filter { found[$0.key] != $0.value }
        if more.isEmpty, less.isEmpty { return nil }
        return "\(name): the store has \(more), the model \(less)"
    }
}

/// Identifiers that a test has created and may query.
package struct MetadataKnowledge: Sendable {
    package var owners = [Sample.owner, Sample.stranger]
    package var sessions: [SessionID] = []
    package var files: [FileID] = []
    package var digests: [SHA256Digest] = []

    package init() {}
}
