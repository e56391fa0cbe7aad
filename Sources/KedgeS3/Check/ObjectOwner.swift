internal import KedgeEngine
internal import KedgeModel

/// The owner of an object, as its key shows.
enum ObjectOwner: Hashable, Sendable {
    /// The object belongs to a session, or has become its blob.
    case staging(StagingKey)
    /// A probe of the health check or of the copy trial.
    case probe
    /// Not a key of this store.
    case unknown
}

extension ObjectKeys {
    /// Returns the owner of an object.
    func owner(of object: String) -> ObjectOwner {
        guard object.hasPrefix(prefix) else { return .unknown }
        let names = object.dropFirst(prefix.count).split(
            separator: "/", omittingEmptySubsequences: false)
        switch (names.first, names.count) {
        case ("objects", 2): return ownerOfObject(names[1])
        case ("pieces", 3): return ownerOfPiece(names[2], in: names[1])
        case ("health", 2) where SessionID.isWellFormed(String(names[1])): return .probe
        default: return .unknown
        }
    }

    /// Parses a session's key, alone or with the digest of the only chunk.
    private func ownerOfObject(_ name: Substring) -> ObjectOwner {
        let parts = name.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        let key = String(parts[0])
        let isNamed =
            parts.count == 1
            || SHA256Digest(hex: String(parts[1])).map { $0.hex == parts[1] } == true
        return isNamed && SessionID.isWellFormed(key) ? .staging(StagingKey(key)) : .unknown
    }

    /// Parses the chunk's index, and the piece's offset, length and mark.
    private func ownerOfPiece(_ name: Substring, in key: Substring) -> ObjectOwner {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        let key = String(key)
        guard parts.count == 4, parts[..<3].allSatisfy({ WireInteger.parse($0) != nil }),
            SessionID.isWellFormed(key)
        else { return .unknown }
        return .staging(StagingKey(key))
    }
}
