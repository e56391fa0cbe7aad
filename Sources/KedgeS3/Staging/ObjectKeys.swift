package import KedgeEngine
internal import KedgeHash
package import KedgeModel

/// Keys of the objects below the prefix. They consist only of our own ids and digests. Their first
/// characters are random, so a store can distribute them.
package struct ObjectKeys: Hashable, Sendable {
    package let prefix: String

    package init(
        prefix: String
    ) {
        self.prefix = prefix
    }

    /// The object into which the parts of a file with several chunks are assembled.
    package func assembled(_ key: StagingKey) -> String { "\(prefix)objects/\(key)" }

    /// The object of a file with one chunk or no bytes. The key contains the digest, so no late
    /// request can replace the bytes by others.
    package func whole(_ key: StagingKey, _ digest: SHA256Digest) -> String {
        "\(prefix)objects/\(key)-\(digest.hex)"
    }

    /// The common prefix of both kinds. Session keys have a fixed length, so it matches no other
    /// session.
    func objects(of key: StagingKey) -> String { assembled(key) }

    func piece(_ piece: Piece, ofChunk index: Int, _ key: StagingKey) -> String {
        "\(pieces(of: key))\(index)-\(piece.start)-\(piece.byteCount)-\(piece.mark)"
    }

    package func pieces(of key: StagingKey) -> String { "\(prefix)pieces/\(key)/" }

    /// A key for an object that a check writes and removes.
    package func probe() -> String { "\(prefix)health/\(SessionID.random())" }

    /// Whether a location is a blob's key below this prefix.
    package func isBlob(_ location: String) -> Bool { location.hasPrefix("\(prefix)objects/") }

    /// The object that the chunks become.
    func blob(of file: StagedFile) -> String {
        if file.chunks.isEmpty { return whole(file.key, SHA256Hasher.digest(of: [])) }
        if case .object = ChunkLocation(file.chunks[0].location), file.chunks.count == 1 {
            return whole(file.key, file.chunks[0].digest)
        }
        return assembled(file.key)
    }
}
