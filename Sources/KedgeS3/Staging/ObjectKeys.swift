internal import KedgeEngine
internal import KedgeHash
internal import KedgeModel

/// Names of objects below the prefix. They are made of ids and digests of ours alone, and their first
/// characters are random, so that a store can spread them.
struct ObjectKeys: Hashable, Sendable {
    let prefix: String

    /// Where the parts of a file with several chunks become one.
    func assembled(_ key: StagingKey) -> String { "\(prefix)objects/\(key)" }

    /// A file that came as one chunk, or has no bytes. The digest is part of the name, so that nothing that
    /// arrives late can put other bytes in its place.
    func whole(_ key: StagingKey, _ digest: SHA256Digest) -> String {
        "\(prefix)objects/\(key)-\(digest.hex)"
    }

    /// What the names of both kinds begin with. Keys of sessions have one length, so it is nobody else's.
    func objects(of key: StagingKey) -> String { assembled(key) }

    func piece(_ piece: Piece, ofChunk index: Int, _ key: StagingKey) -> String {
        "\(pieces(of: key))\(index)-\(piece.start)-\(piece.byteCount)-\(piece.mark)"
    }

    func pieces(of key: StagingKey) -> String { "\(prefix)pieces/\(key)/" }

    /// An object that is written and removed to see whether that works.
    func probe() -> String { "\(prefix)health/\(SessionID.random())" }

    /// False for a location that another place has recorded.
    func isBlob(_ location: String) -> Bool { location.hasPrefix("\(prefix)objects/") }

    /// The one object that the chunks are to become.
    func blob(of file: StagedFile) -> String {
        if file.chunks.isEmpty { return whole(file.key, SHA256Hasher.digest(of: [])) }
        if case .object = ChunkLocation(file.chunks[0].location), file.chunks.count == 1 {
            return whole(file.key, file.chunks[0].digest)
        }
        return assembled(file.key)
    }
}
